"""The gate of addresses, by the table of what must not be reached."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as some

from batos.agency.look_ups.web_addresses import PublicGate, ServiceGate, is_below, is_public, parse_address
from batos.protocol.errors import Refused

PUBLIC = ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e", "2002:5db8:d70e::1"]
HOSTILE = [
    "127.0.0.1", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "224.0.0.1",
    "255.255.255.255", "240.0.0.1", "192.0.2.1", "198.18.0.1", "::1", "::", "fe80::1%eth0", "fc00::1", "ff02::1",
    "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::",
    "2001:0:7f00:1:0:0:80ff:fffe", "2001:db8::1", "nothing", "",
]  # fmt: skip


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_pass(text: str) -> None:
    """Also those that have a public one within them."""
    assert is_public(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_address_of_this_machine_or_network_passes(text: str) -> None:
    """Neither as it is, nor within another."""
    assert not is_public(text)


@given(some.ip_addresses(v=4))
def test_an_address_within_another_is_judged_as_itself(ip: ipaddress.IPv4Address) -> None:
    """Mapped, by NAT64, by 6to4: what is reached in the end counts."""
    number = int(ip)
    forms = [
        ipaddress.IPv6Address(0xFFFF << 32 | number),
        ipaddress.IPv6Address(0x64FF9B << 96 | number),
        ipaddress.IPv6Address(0x2002 << 112 | number << 80),
    ]
    assert {is_public(str(each)) for each in forms} == {is_public(str(ip))}


@pytest.mark.parametrize(
    "text",
    [
        "ftp://example.org/", "file:///etc/passwd", "gopher://example.org", "example.org/page", "https://", "//x.org",
        "https://user@example.org/", "https://user:word@example.org/", "http://127.1/", "http://0x7f.1/",
        "http://2130706433/", "http://0177.0.0.1/", "http://１２７.1/", "http://example.org\\@evil.org/",
        "http://example.org/a b", "http://example.org/\n", "http://exa mple.org/", "http://%31%32%37.1/",
        "http://example.org:70000/", "http://[::1/", f"http://example.org/{'x' * 2048}", "http://a_b!.org/",
    ],
)  # fmt: skip
def test_an_address_that_is_written_to_deceive_is_refused(text: str) -> None:
    """With a remedy, before anything is resolved."""
    with pytest.raises(Refused) as told:
        parse_address(text)
    assert told.value.field == "address"
    assert told.value.remedy


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("https://Example.ORG", "https://example.org/"),
        ("https://example.org:443/a?b=c#d", "https://example.org/a?b=c"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
        ("http://example.org.:8080/", "http://example.org:8080/"),
        ("http://[2606:2800::1]/x", "http://[2606:2800::1]/x"),
    ],
)
def test_an_address_has_one_form(text: str, form: str) -> None:
    """Small letters, ASCII, no fragment, no usual port."""
    assert str(parse_address(text)) == form
    assert str(parse_address(form)) == form


def test_redirections_are_joined_and_never_leave_encryption() -> None:
    """A relative one stays; https to http is refused."""
    page = parse_address("https://example.org/a/b")
    assert str(page.join("../c?d")) == "https://example.org/c?d"
    assert str(parse_address("http://example.org/").join("https://example.org/")) == "https://example.org/"
    with pytest.raises(Refused, match="not encrypted"):
        page.join("http://example.org/")
    with pytest.raises(Refused):
        page.join("file:///etc/passwd")


@pytest.mark.parametrize(
    ("gate", "text", "passes"),
    [
        (PublicGate(), "https://example.org/", True),
        (PublicGate(), "http://example.org:8080/", False),
        (PublicGate(ports=[8080]), "http://example.org:8080/", True),
        (PublicGate(), "http://93.184.215.14/", False),
        (PublicGate(["93.184.215.14"]), "http://93.184.215.14/", True),
        (PublicGate(["example.org"]), "https://www.example.org/", False),
        (PublicGate(["*.example.org"]), "https://www.example.org/", True),
        (PublicGate(["*.example.org"]), "https://evilexample.org/", False),
        (PublicGate(["example.org"], ["/3"]), "https://example.org/3/x?y", True),
        (PublicGate(["example.org"], ["/3"]), "https://example.org/3/../4", False),
        (PublicGate(["example.org"], ["/3"]), "https://example.org/3/%2e%2e/4", False),
        (PublicGate(["example.org"], ["/3"]), "https://example.org/34", False),
        (ServiceGate(parse_address("http://127.0.0.1:8090/kiwix")), "http://127.0.0.1:8090/kiwix/search", True),
        (ServiceGate(parse_address("http://127.0.0.1:8090/kiwix")), "http://127.0.0.1:8091/kiwix/search", False),
        (ServiceGate(parse_address("http://127.0.0.1:8090/kiwix")), "http://127.0.0.1:8090/other", False),
        (ServiceGate(parse_address("http://127.0.0.1:8090")), "http://localhost:8090/", False),
    ],
)
def test_a_gate_keeps_to_its_grant(gate: PublicGate | ServiceGate, text: str, passes: bool) -> None:
    """Hosts, paths and ports; an IP address only where it is granted itself."""
    if passes:
        gate.check(parse_address(text))
    else:
        with pytest.raises(Refused):
            gate.check(parse_address(text))


def test_only_the_public_gate_judges_where_a_name_leads() -> None:
    """An own service is where the person says."""
    assert ServiceGate(parse_address("http://box:80")).admits("127.0.0.1")
    assert not PublicGate().admits("127.0.0.1")
    assert PublicGate().admits("93.184.215.14")


@given(some.text(alphabet="/.%2eE2fFab", max_size=20))
def test_no_spelling_climbs_out_of_a_granted_path(text: str) -> None:
    """Whatever passes has no part that climbs once a server has undone the percent signs."""
    path = f"/a/{text}"
    if is_below(path, "/a"):
        undone = path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/")
        assert ".." not in undone.split("/")
