from __future__ import annotations

from typing import TYPE_CHECKING

import llm_nexus
import pytest

from nexus_core.testing import write_files

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ["nexus_core.testing.fixtures"]


@pytest.mark.usefixtures("nexus_home")
def test_template_has_the_instructions_of_the_directory(tmp_path: Path) -> None:
    write_files(tmp_path, {"work/AGENTS.md": "Answer in verse, for $5."})

    template = llm_nexus.load_template(str(tmp_path / "work"))

    prompt, system = template.evaluate("Why?")
    assert prompt == "Why?"
    assert "Answer in verse, for $5." in (system or "")


@pytest.mark.usefixtures("nexus_home")
def test_fragment_has_the_same_text(tmp_path: Path) -> None:
    write_files(tmp_path, {"work/AGENTS.md": "Answer in verse."})

    fragment = llm_nexus.load_fragment(str(tmp_path / "work"))

    assert "Answer in verse." in fragment
    assert fragment.source == f"nexus:{tmp_path / 'work'}"


def test_missing_directory_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match="there is no directory 'nowhere'"):
        llm_nexus.load_template("nowhere")
