"""Readers of transcripts that plugins add, and the directories in which programs keep their files."""

from __future__ import annotations

from nexus_core.types.base import dataclass, require_text, require_type


@dataclass(frozen=True, slots=True)
class TranscriptLocation:
    """Files in which a program keeps its transcripts.

    Attributes:
        directory: A directory: `~/.copilot`.
        pattern: A glob pattern relative to it, of one file per conversation: `session-state/*/events.jsonl`.
        variable: An environment variable that names another directory; "" if there is none.
    """

    directory: str
    pattern: str
    variable: str = ""

    def __post_init__(self) -> None:
        require_text(self.directory, "TranscriptLocation.directory")
        require_text(self.pattern, "TranscriptLocation.pattern")
        require_type(self.variable, "TranscriptLocation.variable", str)
        if ".." in self.pattern.split("/") or self.pattern.startswith("/"):
            raise ValueError(f"TranscriptLocation.pattern must stay in its directory, not {self.pattern!r}")


@dataclass(frozen=True, slots=True)
class TranscriptReader:
    """A reader for the transcripts of a program, imported when a transcript is read.

    Attributes:
        name: Name of the format, in reports and in the names of sessions: lower case letters, digits and hyphens.
        program: Name of the program, for people: `Copilot CLI`.
        target: The `TranscriptFormat` of `nexus_core.plugin.transcripts`, as `package.module:attribute`.
        locations: Where the program keeps its files; empty if they have no usual place.
    """

    name: str
    program: str
    target: str
    locations: tuple[TranscriptLocation, ...] = ()

    def __post_init__(self) -> None:
        for field in ("name", "program", "target"):
            require_text(getattr(self, field), f"TranscriptReader.{field}")
        is_word = self.name[0].isalpha() and self.name.replace("-", "_").isidentifier()
        if not is_word or self.name != self.name.lower():
            raise ValueError(f"TranscriptReader.name must be lower case letters, digits and hyphens, not {self.name!r}")
        module, _, attribute = self.target.partition(":")
        if not all(part.isidentifier() for part in (*module.split("."), attribute)):
            raise ValueError(f"TranscriptReader.target must look like 'package.module:attribute', not {self.target!r}")
        require_type(self.locations, "TranscriptReader.locations", tuple)
        for each in self.locations:
            require_type(each, "TranscriptReader.locations", TranscriptLocation)
