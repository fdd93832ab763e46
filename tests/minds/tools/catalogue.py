"""A few tools for tests: look-ups, two that change something, and one with numbers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Final

from batos.agency.toolbox import Tool

TODAY: Final = date(2026, 11, 30)


def tool(name: str, purpose: str, properties: Mapping[str, object], *, reads: bool = True) -> Tool:
    """A tool all of whose arguments are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name, purpose, schema, "program", reads=reads)


TEXT: Final = {"type": "string"}
DAY: Final = {"type": "string", "format": "date", "description": "the day, YYYY-MM-DD"}
WIKI: Final = tool("wiki.search_", "Search articles of Wikipedia.", {"query": TEXT})
NEWS: Final = tool("news.search_", "Search the news of the day.", {"query": TEXT})
FETCH: Final = tool("web.fetch_", "Fetch the page at an address.", {"address": {"type": "string", "format": "uri"}})
WEATHER: Final = tool("weather.forecast_", "Tell the weather of a town.", {"place": TEXT, "date": DAY})
TRAINS: Final = tool("trains.find_", "Find train connections.", {"origin": TEXT, "destination": TEXT, "date": DAY})
ORDERS: Final = tool(
    "orders.status_", "Tell the status of an order.", {"order": {**TEXT, "description": "the number of the order"}}
)
LAMP: Final = tool(
    "lamp.switch_",
    "Switch the lamp of a room.",
    {"room": TEXT, "state": {"type": "string", "enum": ["off", "on"]}},
    reads=False,
)
MONEY: Final = tool(
    "money.convert_",
    "Convert an amount of money into another currency.",
    {
        "amount": {"type": "number"},
        "currency": {"type": "string", "enum": ["CHF", "EUR", "USD"]},
        "into": {"type": "string", "enum": ["CHF", "EUR", "USD"]},
    },
)
ALL: Final = (FETCH, LAMP, MONEY, NEWS, ORDERS, TRAINS, WEATHER, WIKI)
