"""Whether a file is on a file system of another machine, where SQLite's log would not be safe.

What programs on two machines have of a log in their memories is not the same. SQLite's older way, a journal of what was
there before, needs no memory in common.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MOUNTS = Path("/proc/self/mountinfo")
"""Where Linux tells what is mounted; elsewhere nobody tells, and every file counts as one of this machine."""

_NAMES = """
9p afs beegfs ceph cifs coda davfs gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2 orangefs panfs prl_fs pvfs2 smb3
smbfs vboxsf virtiofs vmhgfs fuse.blobfuse fuse.blobfuse2 fuse.ceph fuse.ceph-fuse fuse.curlftpfs fuse.davfs
fuse.gcsfuse fuse.glusterfs fuse.goofys fuse.grpcfuse fuse.gvfsd-fuse fuse.juicefs fuse.kio-fuse fuse.lizardfs fuse.mfs
fuse.moosefs fuse.rclone fuse.s3fs fuse.smbnetfs fuse.sshfs fuse.vmhgfs-fuse fuse.webdavfs
"""
_KINDS = frozenset(_NAMES.split())
_ESCAPED = re.compile(r"\\([0-7]{3})")


def network_of(path: Path) -> str:
    """The kind of network file system that a file is on, or will be: `nfs4`; "" for none."""
    try:
        mounts = list(_mounts())
        if _KINDS.isdisjoint(mount.kind for mount in mounts):
            return ""
        directory = _nearest(os.path.realpath(path))
        number = os.stat(directory).st_dev  # noqa: PTH116 - a name, as all of these are
    except OSError:
        return ""
    device = f"{os.major(number)}:{os.minor(number)}"
    there = [mount for mount in mounts if mount.device == device]
    there = there or sorted((each for each in mounts if each.holds(directory)), key=lambda mount: len(mount.point))
    return there[-1].kind if there and there[-1].kind in _KINDS else ""


def _nearest(path: str) -> str:
    """The directory that a file is in, or the first above it that is there."""
    directory = os.path.dirname(path)  # noqa: PTH120 - a name
    return directory if directory in ("", "/") or os.path.isdir(directory) else _nearest(directory)  # noqa: PTH112 - as above


def without_log(kind: str) -> str:
    """What a person should know about a ledger on such a file system."""
    return (
        f"the ledger is on a network file system ({kind}), so SQLite keeps it without a log: it is slower, and whoever"
        " reads and whoever writes wait for each other; for many machines, use a server (postgresql://…)"
    )


class _Mount(NamedTuple):
    """A line of that file: the number of the device, the place, and what kind of file system it is."""

    device: str
    point: str
    kind: str

    def holds(self, directory: str) -> bool:
        return f"{directory}/".startswith(f"{self.point.rstrip('/')}/")


def _mounts() -> Iterator[_Mount]:
    for line in MOUNTS.read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        left, _, right = line.partition(" - ")
        fields, kind = left.split(" "), right.partition(" ")[0]
        if len(fields) > 4:  # noqa: PLR2004 - the place is the fifth
            yield _Mount(fields[2], _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4]), kind)
