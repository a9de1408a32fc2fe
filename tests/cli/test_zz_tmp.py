from tests.conftest import Cli, InstallPlugin
def test_x(cli, install_plugin):
    install_plugin("vol", "import itertools\nfrom nexus_core import Section, hookimpl\nN=itertools.count()\n@hookimpl\ndef nexus_static_sections(request):\n    return [Section('v', title='V', text=f'number {next(N)}')]\n")
    for c in (["doctor"],["diff","--check"]):
        o=cli(*c); print(o.code,o.out,o.err)
    assert 0
