"""Every kind of plug-in has a contract test that takes in new ones by itself: no folder of plug-ins is left out."""

from __future__ import annotations

import re
from pathlib import Path

from cake_tui import registry

ROOT = Path(__file__).parents[2]
# folder of plug-ins -> the test that runs over all that the registry finds there
CONTRACTS = {
    "agents": "tests/agents/test_agents_contract.py",
    "backends": "tests/contracts/test_backends.py",
    "cli": "tests/contracts/test_commands.py",
    "executors": "tests/contracts/test_executors.py",
    "exporters": "tests/contracts/test_exporters.py",
    "ir/build/contraction": "tests/contracts/test_ir_plugins.py",
    "ir/edits": "tests/contracts/test_ir_plugins.py",
    "ir/laws": "tests/contracts/test_laws.py",
    "ir/lower": "tests/contracts/test_ir_plugins.py",
    "monitors": "tests/contracts/test_monitors.py",
    "rules": "tests/rules/test_rules.py",
    "tui/panes": "tests/tui/test_panes.py",
}


def _places() -> set[str]:
    folders = {path.parent for path in registry.PACKAGE.rglob("*.py")}
    folders |= {folder.parent for folder in folders}
    found = {folder.relative_to(registry.PACKAGE).as_posix() for folder in folders if folder != registry.PACKAGE.parent}
    return {place for place in found if registry.names(place)}


def test_no_folder_of_plug_ins_lacks_a_contract_test() -> None:
    # Another family of structures is tested with the first: that test walks through all of them.
    places = {re.sub(r"^ir/build/.*", "ir/build/contraction", place) for place in _places()}
    assert places == set(CONTRACTS)


def test_contract_tests_ask_the_registry() -> None:
    for place, test in CONTRACTS.items():
        text = (ROOT / test).read_text(encoding="utf-8")
        asks = {
            f'names("{place}")',
            'names(f"ir/build/{family}")',
            "edits.names()",
            'names("ir/lower")',
            "names(PLACE)",
        }
        assert any(words in text for words in asks), (place, test)
