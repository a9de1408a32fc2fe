import pytest

from nexus_core.plugin import Command


@pytest.mark.parametrize("name", ["git", "git-status", "k8s"])
def test_lower_case_words_are_command_names(name: str) -> None:
    assert Command(name, "help", "module:app").name == name


@pytest.mark.parametrize("name", ["", "Git", "-x", "8ball", "a b", "a\n", "a.b"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"Command.name must be"):
        Command(name, "help", "module:app")


@pytest.mark.parametrize("target", ["", "module", "module:", ":app", "a..b:app", "a b:app", "a:b:c"])
def test_a_target_that_cannot_be_imported_is_refused(target: str) -> None:
    with pytest.raises(ValueError, match=r"Command.target must look like"):
        Command("git", "help", target)
