"""Addresses on networks: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, network

POSITIVES: dict[Recogniser, list[str]] = {
    network.ipv4: [
        "at ⟦106.31.73.20⟧.", "⟦10.0.0.0/8⟧", "http://⟦127.0.0.1⟧:80/", "⟦255.255.255.255⟧, ⟦1.2.3.4⟧",
        "version 2 runs on ⟦10.2.3.4⟧",
    ],
    network.ipv6: [
        "⟦6e40:4041:c617:e898:c11:40d2:c669:2eb4⟧", "address:⟦fe80::1⟧.", "[⟦2001:db8::ff00:42:8329⟧]",
        "⟦::ffff:192.0.2.128⟧", "is ⟦2001:db8::⟧ now", "⟦fe80::1%eth0⟧, ⟦2001:db8::1/64⟧",
        "ping ⟦::1⟧ and ⟦2001:db8:0:0:1::5⟧",
    ],
    network.mac: [
        "⟦00:1A:2b:3C:4d:5E⟧", "mac=⟦00-1a-2b-3c-4d-5e⟧,", "⟦001a.2b3c.4d5e⟧.", "EUI-64 ⟦00:1A:2b:ff:fe:3C:4d:5E⟧",
    ],
    network.mac_in_context: [
        "MAC address: ⟦001A2B3C4D5E⟧.", "mac=⟦001a2b-3c4d5e⟧", "the MAC is ⟦0:1a:2b:3:4d:5e⟧",
    ],
    network.url_with_credentials: [
        "⟦https://jo:hunter2@example.com/x?y=1⟧ and", '"⟦postgres://u:p@ss@db:5432/n⟧"', "⟦redis://:secret@cache⟧",
        "⟦mongodb+srv://app:p%40ss@cluster0.example.net/db⟧",
    ],
    network.url_with_token: [
        "https://x.example/a?access_token=⟦abc123def⟧&b=1", "/get?id=5&X-Amz-Signature=⟦9f8e7d6c5b4a⟧",
        "https://hub.example/?user=jo&password=⟦hunter2x⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    network.ipv4: [
        "256.1.1.1", "1.2.3", "1.2.3.4.5", "1.2.3.400", "v1.2.3.4", "1..2.3", "1.2.3.", "12.34", "1,2,3,4",
        "1.2.3.4a", "999.999.999.999", "version 1.2.3.4", "firmware 10.0.19.1", "Section 3.2.1.4", "1.2.3.4.5.6",
        "1.2.3.-4", "1 .2.3.4", "1.2.3.4_5", "0001.2.3.4", "10.0.0.256", "release 4.15.0.1", "12.34.56",
    ],
    network.ipv6: [
        "std::vector", "12:30:45", "add::bad", "1:2:3:4:5:6:7", "1::2::3", "::", "a::b", "12345::1", "fe80::1g",
        "1:2:3:4:5:6:7:8:9", "Note: see 3:16", "10:30:00", "::ffff", "a:b:c", "1:2", "12:34:56:78:9a", "fe80:::1",
        "2001:db8::12345", "x::1", "00:1A:2b:3C:4d:5E", "Genesis 1:1-2:3",
    ],
    network.mac: [
        "00:1A:2b:3C:4d", "00:1A:2b:3C:4d:5E:6F", "00:1A-2b:3C:4d:5E", "00:1G:2b:3C:4d:5E", "001a2b3c4d5e",
        "001a.2b3c", "12:30:45", "0:1A:2b:3C:4d:5E", "x00:1A:2b:3C:4d:5E", "001A:2B3C:4D5E", "00:1A:2b:3C:4d:5",
        "00-1A-2b-3C-4d-5E-6", "00.1A.2b.3C.4d.5E", "00 1A 2b 3C 4d 5E", "00::1A:2b:3C:4d:5E", "001a.2b3c.4d5",
        "001a-2b3c-4d5e", "00:1A:2b:3C:4d:5Ex", ":00:1A:2b:3C:4d:5E", "-00-1a-2b-3c-4d-5e",
    ],
    network.mac_in_context: [
        "MAC 12", "MAC address", "Mac OS X 10", "big mac 001A2B3C4D5E0", "mac 001A2B3C4D5", "mac 001A2B3C4D5G",
        "MAC: unknown", "macOS 001A2B3C4D5E", "machine 001A2B3C4D5E", "001A2B3C4D5E", "Fleetwood Mac 1977",
        "mac\n\n001A2B3C4D5E", "mac and cheese 123456789012", "MAC 001A2B-3C4D5E-6F", "stigmac 001A2B3C4D5E",
        "mac 001A 2B3C 4D5E", "mac = 0:1a:2b:3", "mac 001A2B3C4D5E:00", "MAC is here",
        "mac address is 001A2B3C4D5EFF", "MAC, 001A2B3C4D5E",
    ],
    network.url_with_credentials: [
        "https://example.com", "https://example.com:80/a", "https://example.com/a:b@c", "mailto:a@b.com",
        "https://jo@example.com", "//a:b@c", "https:// a:b@c", "http://a:@c", "ftp:a:b@c", "time 10:30 @ noon",
        "https://example.com/jo:pw@x", "jo:hunter2@example.com", "http://example.com?q=a:b",
        "https://example.com:8080", "://a:b@c", "1http//a:b@c", "ssh://git@example.com", "https:/jo:pw@example.com",
        "https://@example.com", "C://folder", "see http://x.com/ : me @ home",
    ],
    network.url_with_token: [
        "?token=", "?token=abc", "token=abcdef123", "?page=123456789", "&tokens=abcdef123", "?api_version=20200101",
        "?q=password", "? token=abcdef123", "/token/abcdef123", "?sign=abcdef123", "?key=abcdef123",
        "?token =abcdef123", "#token=abcdef123", "?secretary=abcdef123", "?token:abcdef123", "?passwords=abcdef1",
        "?utm_source=newsletter", "what token = abcdef123", "?sid=12345", "?author=someone", "?sigma=0.123456",
    ],
}  # fmt: skip
