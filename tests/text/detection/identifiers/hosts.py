"""Machines and pages: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, network

POSITIVES: dict[Recogniser, list[str]] = {
    network.host: [
        "ssh ⟦db-prod-03.corp.example.internal⟧", "on ⟦printer.local⟧.", "⟦nas.lan⟧, ⟦wiki.intranet⟧",
        "⟦kbjornstad-mbp.local⟧: down", "https://⟦git.acme.corp⟧:8443",
    ],
    network.host_by_role: [
        "⟦srv-fin-01⟧ is down", "check ⟦db-prod-03⟧, please", "on ⟦DESKTOP-4F7K2LQ⟧", "⟦ip-10-0-3-12⟧ rebooted",
        "⟦web-eu-west-12⟧ and ⟦vpn-osl-002⟧.",
    ],
    network.host_in_context: [
        "my laptop is ⟦NB-OSL-0447⟧", "host: ⟦oslo-mail-3⟧.", "ssh into ⟦kb-dev-12⟧ first", "server ⟦ACME-DC-01⟧",
        "hostname=⟦lt-kbjornstad-2⟧",
    ],
    network.private_url: [
        "see ⟦https://wiki.corp/pages/12⟧.", "⟦linkedin.com/in/anna-lopez-8812⟧", "⟦https://twitter.com/dvolk_91⟧,",
        "at (⟦https://github.com/kbjornstad⟧)", "⟦https://shop.example.com/reset/9f8e7d6c5b4a⟧",
        "open ⟦https://example.com/unsubscribe?email=jo%40example.org&x=1⟧", "⟦http://10.0.0.12:8080/admin⟧",
        "⟦https://docs.google.com/document/d/1aBcD_efGh/edit⟧", "⟦https://shop.example.com/users/jdoe42/orders⟧",
        "⟦https://acme.atlassian.net/browse/HR-12⟧", "⟦https://uni.example.edu/~asmith⟧", "⟦instagram.com/jo.bakes⟧!",
        "⟦https://app.example.com/invite/team/aZ19-kk20-XY⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    network.host: [
        "the local news", "self.local", "this.internal", "config.internal", "settings.local.json", "a.local()",
        ".local",
        "example.com", "internal. Next", "jo@mail.corp", "corp.example.com", "local.example", "x.localhost",
        "go local.",
        "usr/bin.local", "x.internally", "e.g. local", "acme corp.", "the LAN. It", "x.lan-2", "app.internal",
        "intra.net",
    ],
    network.host_by_role: [
        "web-based", "db-2", "app-store", "up-to-date", "node-red", "web-2", "api-v2", "mail-in-rebate", "pc-based-1",
        "DESKTOP-publishing", "DESKTOP-ABCDEFG", "ip-10-0-3", "vm-1", "a-db-prod-03", "db-prod-03-x", "db_prod_03",
        "WIN-WIN",
        "host-to-host", "server-side", "dev-ops-1", "prod-12345", "db-prod-03.5", "laptop-bag-01", "sweb-fin-01",
        "LAPTOP-1",
    ],
    network.host_in_context: [
        "host families", "laptop is new", "server 2019", "the machine is up-to-date", "laptop", "node 12", "host: acme",
        "ghost a-b-1", "hosts a-b-1", "server: nginx", "box of 12", "ping pong", "computer-aided 3-d", "pc 12-34",
        "vm is on",
        "printer: A4-paper", "server is 3-phase", "ssh key", "my laptop was 2 years old", "host is x_y_1",
        "host a-b-12-",
        "instance of class-based", "NB-OSL-0447",
    ],
    network.private_url: [
        "https://example.com/", "https://en.wikipedia.org/wiki/Oslo", "and/or", "12/05/2021", "linkedin.com",
        "github.com/",
        "https://github.com/pytorch/pytorch", "https://twitter.com/search", "https://example.com/reset", "w/o", "a/b/c",
        "https://example.com/reset-password", "https://news.example.com/2021/05/12/title-of-it", "http://localhost/x",
        "https://example.com/users", "https://example.com/?page=2", "/usr/local/bin", "text/html",
        "https://x.com/i/trending",
        "https://example.com/share/now", "1/2 cup", "https://example.com/login", "km/h", "https://docs.python.org/3/",
    ],
}  # fmt: skip
