"""Crypto-currencies: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, crypto

_MONERO = "44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otXft3XjrpDtQGv7SqSsaBYBb98uNbr2VBBEt7f2wfn3RVGQBEP3A"
_ETHER = "0xde0B295669a9FD93d5F28D9Ec85E40f4cb697BAe"
_WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"

POSITIVES: dict[Recogniser, list[str]] = {
    crypto.base58_address: [
        "pay ⟦1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa⟧.", "btc:⟦3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy⟧",
        "usdt on tron ⟦TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t⟧, thx", "much ⟦DH5yaieqoZN36fDVciNyRueRGvGLR3mr7L⟧ wow",
        "key ⟦5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ⟧", f"xmr ⟦{_MONERO}⟧",
    ],
    crypto.bech32_address: [
        "send to ⟦bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq⟧!",
        "⟦bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr⟧",
        "(⟦BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4⟧)",
    ],
    crypto.hexadecimal_address: [
        f"wallet ⟦{_ETHER}⟧.", f"tx=⟦0x{'9a' * 32}⟧", f"'⟦{_ETHER.lower()}⟧'",
    ],
    crypto.crypto_in_context: [
        "my solana wallet: ⟦7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV⟧",
        "BTC address is ⟦1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb⟧,", f"eth ⟦{_ETHER[2:]}⟧",
        "wallet ⟦bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdx⟧",
    ],
    crypto.seed_phrase: [
        f"seed phrase: ⟦{_WORDS}⟧.", f'My recovery phrase is "⟦{_WORDS}⟧"', f"mnemonic = ⟦{_WORDS} {_WORDS}⟧",
        f"backup phrase: ⟦{_WORDS.title()}⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    crypto.base58_address: [
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNb", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLx", "1A1zP1eP5QGefi2DMPTfTL5SLmv7Divf",
        "x01A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa0",
        "thequickbrownfoxjumpsoverthedog",
        "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNI", "44AFFq5kSiGBoZ4NMDwYtN18obc8AemS33DBLWs3H7otX", _MONERO + "x",
        _MONERO[:-1],
        "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTK", "d41d8cd98f00b204e9800998ecf8427e", "A" * 34, "2" * 30,
        "1BoatSLRHtKNngkdXEeobR76b53LETtpyU", "Donaudampfschifffahrtsgesellschaft", "MzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2",
        "LlanfairpwllgwyngyllgogerychwyrndrobwllLL", "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6u",
        "DH5yaieqoZN36fDVciNyRueRGvGLR3mr7M",
        "11111111111111111111111111111111",
    ],
    crypto.bech32_address: [
        "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdp", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5md", "bc1",
        "bc1 qar0srrr7xfk",
        "xbc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdqq", "abc1def2",
        "bc1QAR0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "bc1bar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "tb1", "ltc1q",
        "bc2qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "500 bc 1 qar0", "addr1",
        "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq7",
        "npub1qqqqqqqqqqqqqqqqqqqqqqq", "stake1234", "cosmos1", "abbc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq",
        "bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcq", "nsec1aaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ],
    crypto.hexadecimal_address: [
        "0x", "0xdeadbeef", _ETHER[:-1], _ETHER + "a", _ETHER[2:], "0x" + "g" * 40, "x" + _ETHER, _ETHER + "_x", "0X12",
        "0x" + "a" * 41, "0x" + "a" * 63, "0x" + "a" * 65, "0x" + "a" * 128, "0x7fff5fbff8a8", "1920x1080", "0x0",
        "00x1",
        "0x" + "a" * 20 + " " + "a" * 20, "#ff00ff", "0x1.8p3", "0x" + "1" * 39, "10x" + "a" * 40,
    ],
    crypto.crypto_in_context: [
        "wallet: empty", "bitcoin is at 61000", "my wallet is brown", "btc 7EcDh", "eth0: flags=4163", "sol: sun",
        "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV", "dash to theend", "wallets 7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTz",
        "wallet: " + "a" * 40 + "b", "crypto: thequickbrownfoxjumpsoverthelazydog",
        "wallet: " + "1" * 30, "ada lovelace",
        "tron: legacy", "ripple effects", "bitcoin\n\n7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV",
        "phantom of the opera",
        "solar: 7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV", "eth " + "a" * 39, "wallet address is needed",
        "doge 1000 coins",
    ],
    crypto.seed_phrase: [
        "seed phrase: no", "my seed phrase is lost", "seed: grass and clover", "recovery is slow", "backup: nightly",
        "secret: I like it", "seed phrase has 12 words", "seed phrase: legal winner thank", "the mnemonic is good",
        "seeds: " + _WORDS, _WORDS, "recovery phrase " + _WORDS, "seed phrase: " + _WORDS[:-8], "Seed: 42",
        "backup was fine",
        "seed phrase: " + _WORDS + " and so on it goes until everything ends here, alas ever after we go on and on",
        "the seed is planted", "mnemonic: my very easy method", "backup words", "recovery: two weeks",
        "birdseed: " + _WORDS,
        "seed phrase: incomprehensibilities " + _WORDS[:30],
    ],
}  # fmt: skip
