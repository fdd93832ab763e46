"""The proxies of adapters in the image, and which adapter a persona thinks with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import transaction
from tests.genesis.loras import gguf_adapter, peft_adapter
from ZODB.Connection import Connection

from batos.genesis import graph
from batos.genesis.adapters import repository
from batos.genesis.adapters.folder import discover, in_use
from batos.genesis.adapters.inventory import NONE, AdapterInventory
from batos.genesis.codex.codex import Codex
from batos.image.roots import root_of
from batos.objects.prototype import UvmObject
from batos.protocol.errors import NotFound


@pytest.fixture
def inventory(tmp_path: Path) -> AdapterInventory:
    """Two adapters of ROBIN's and one of BABS'."""
    folder = tmp_path / "adapters"
    peft_adapter(folder / "robin" / "warm")
    gguf_adapter(folder / "robin" / "koan")
    gguf_adapter(folder / "babs" / "atlas")
    return discover(folder)


@pytest.fixture
def root(connection: Connection, codex: Codex) -> Any:
    """The root of an image after genesis."""
    found = root_of(connection)
    graph.build(found, codex)
    return found


def recorded(root: Any, inventory: AdapterInventory, made: dict[str, str] | None = None) -> list[str]:
    """What genesis writes down when it is done."""
    return repository.record(root, inventory, made or {}, in_use(inventory, repository.choices(root)).values())


def test_each_adapter_has_a_proxy_without_weights(root: Any, inventory: AdapterInventory) -> None:
    """Name, digest, base, rank and what became of it: an object of the image, of a few hundred bytes."""
    recorded(root, inventory, {"ROBIN/koan": "batos-robin-koan:0123456789ab"})
    proxies = repository.proxies(root)
    koan = inventory.find("ROBIN", "koan")
    assert koan is not None
    assert list(proxies) == ["BABS/atlas", "ROBIN/koan", "ROBIN/warm"]
    assert proxies["ROBIN/koan"] == {
        "persona": "ROBIN",
        "name": "koan",
        "kind": "gguf",
        "digest": koan.digest,
        "base": None,
        "architecture": "llama",
        "rank": 4,
        "alpha": 8.0,
        "size": koan.size,
        "present": True,
        "used": True,
        "model": "batos-robin-koan:0123456789ab",
    }
    assert "model" not in proxies["ROBIN/warm"]
    assert all(isinstance(each, UvmObject) for each in root["pLLM_obj"].lora_repository.values())
    assert sum(len(str(each)) for each in proxies.values()) < 3000


def test_a_second_record_writes_nothing(root: Any, inventory: AdapterInventory) -> None:
    """What is there as it should be is left alone, so that a genesis without a change is no commit."""
    assert recorded(root, inventory)
    assert recorded(root, inventory) == []


def test_the_first_is_chosen_by_itself_and_stays_chosen(root: Any, inventory: AdapterInventory, tmp_path: Path) -> None:
    """One that comes later, though first by name, is not taken in its place."""
    recorded(root, inventory)
    assert repository.choices(root) == {"ROBIN": "koan", "BRICK": None, "BABS": "atlas", "ALFRED": None}
    gguf_adapter(tmp_path / "adapters" / "robin" / "aaa")
    grown = discover(tmp_path / "adapters")
    recorded(root, grown)
    assert in_use(grown, repository.choices(root))["ROBIN"].name == "koan"


def test_a_choice_is_written_once(root: Any, inventory: AdapterInventory) -> None:
    """A name, or the base; the same again changes nothing, and a record respects it."""
    assert repository.choose(root, "ROBIN", "warm")
    assert not repository.choose(root, "ROBIN", "warm")
    assert repository.choose(root, "BABS", None)
    recorded(root, inventory)
    assert (repository.choice_of(root, "ROBIN"), repository.choice_of(root, "BABS")) == ("warm", NONE)
    proxies = repository.proxies(root)
    assert [proxies[label]["used"] for label in ("ROBIN/warm", "ROBIN/koan", "BABS/atlas")] == [True, False, False]


def test_what_is_gone_is_marked_and_kept(root: Any, inventory: AdapterInventory) -> None:
    """Its proxy still says which model of earlier missions held it; put back, it is present again."""
    recorded(root, inventory, {"BABS/atlas": "batos-babs-atlas:0123456789ab"})
    left = replace(inventory, adapters=inventory.adapters_of("ROBIN"))
    assert recorded(root, left) == ["lora_repository[BABS/atlas] changed"]
    proxy = repository.proxies(root)["BABS/atlas"]
    assert (proxy["present"], proxy["used"], proxy["model"]) == (False, False, "batos-babs-atlas:0123456789ab")
    recorded(root, inventory)
    assert repository.proxies(root)["BABS/atlas"]["present"]


def test_other_content_changes_its_proxy(root: Any, inventory: AdapterInventory, tmp_path: Path) -> None:
    """The proxy follows the files; what it was is in the history."""
    recorded(root, inventory)
    peft_adapter(tmp_path / "adapters" / "robin" / "warm", {"lora_alpha": 16})
    changed = discover(tmp_path / "adapters")
    assert recorded(root, changed) == ["lora_repository[ROBIN/warm] changed"]
    assert repository.proxies(root)["ROBIN/warm"]["alpha"] == 16.0


def test_proxies_survive_the_connection(root: Any, inventory: AdapterInventory, connection: Connection) -> None:
    """They are loaded again by the allow-listed classes, and genesis after genesis leaves them as they are."""
    recorded(root, inventory)
    manager: transaction.TransactionManager = connection.transaction_manager
    manager.commit()
    connection.cacheMinimize()
    manager.begin()
    assert repository.proxies(root_of(connection))["ROBIN/warm"]["rank"] == 4


def test_an_image_before_genesis_has_no_choices(connection: Connection) -> None:
    """Nothing is chosen, nothing is there, and a choice says what to do first."""
    root = root_of(connection)
    assert set(repository.choices(root).values()) == {None}
    assert repository.proxies(root) == {}
    with pytest.raises(NotFound) as told:
        repository.choose(root, "ROBIN", "warm")
    assert "genesis" in told.value.remedy
