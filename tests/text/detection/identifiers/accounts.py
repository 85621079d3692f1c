"""User names, account numbers and passwords: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, accounts

POSITIVES: dict[Recogniser, list[str]] = {
    accounts.username: [
        "username: ⟦dwilliams1⟧", "Your username on file is ⟦dwilliams1⟧.", "My user name is ⟦aphoenix980⟧, my",
        "username is ⟦APhoenix⟧", "login=⟦jo.smith-2⟧", "User_ID: '⟦the⟧'", "handle is ⟦@jo_b⟧!",
        "my username's ⟦jdoe⟧, username ⟦jdoe99⟧", "User name - ⟦jdoe⟧",
    ],
    accounts.account: [
        "my order id is ⟦2033568069⟧", "my account is ⟦AFG5674G⟧.", "Account ID: ⟦OVXGGYVD6I⟧",
        "Account ID is ⟦HHHAFNTJHD⟧", "Order #⟦12345⟧", "order number ⟦0164150987⟧", "policy no. ⟦AB-1234-X⟧,",
        "passport ⟦X1234567⟧", "acct ⟦99120⟧", "my booking reference ⟦XK9PLM⟧, sort code ⟦12-34-56⟧",
        "my order number is ⟦ABC-12345⟧.", "license plate ⟦7ABC123⟧", "MRN: ⟦A123456⟧", "VIN ⟦1HGCM82633A004352⟧",
        "serial no. ⟦C02X-1234⟧",
    ],
    accounts.ending: [
        "the card ending in ⟦4242⟧ was charged", "last four digits of my account: ⟦9917⟧",
        "last 4 of the SSN are ⟦1120⟧.", "account that ends with **⟦8813⟧",
    ],
    accounts.social_handle: [
        "Instagram: ⟦@jo.bakes⟧", "my Discord is ⟦jo_b#1234⟧", "Telegram ⟦@jo⟧ is not it, Skype: ⟦jo1980⟧.",
        "Twitter handle is ⟦@jo_bakes⟧,",
    ],
    accounts.code: [
        "yes its ⟦0WZTNTNPBR⟧", "⟦AFG5674G⟧.", "⟦L2SUYT4MCQ⟧", "plate ⟦7ABC1234⟧!",
    ],
    accounts.password: [
        "password: ⟦hunter2⟧", "pwd='⟦s3cr3t!⟧'", "My password is ⟦correct4horse⟧", "Passcode = ⟦0000⟧",
        "DB_PASSWORD=⟦s3cret⟧", '{"password": "⟦s3cret⟧"}', "my password's ⟦hunter2⟧", "passphrase: ⟦tulip-Canoe-7⟧",
    ],
    accounts.pin: [
        "my pin's ⟦4821⟧", "my PIN is ⟦4821⟧.", "the pin code: ⟦004821⟧",
        "Door code ⟦4821⟧ or verification code: ⟦118822⟧", "CVV ⟦123⟧, OTP = ⟦55120⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    accounts.username: [
        "username is incorrect", "your username and email", "username", "user name is not valid", "Username?",
        "the username is already taken", "handle is", "I forgot my login", "usernames: a", "username isn't",
        "user name", "a username must be unique", "login page", "log in: now", "username or password",
        "my handle broke", "username please", "login is required", "the door handle is wrong", "user names: two",
        "username is never shown",
    ],
    accounts.account: [
        "account has been pulled up", "in order to 12345", "order 66", "account for 2020", "case closed",
        "order in 1990", "reference frame", "member since 2015", "accountant 12345", "Account ID please",
        "ticket 1984", "disorder 12345", "order of magnitude", "on my account", "the customer is right", "case 12",
        "ref desk", "invoice total 1200", "in order 1984", "student of 2012", "ordered 12345", "flight 12345",
        "policy change", "border 12345", "claim it is true",
    ],
    accounts.ending: [
        "card ending soon", "ending in 1984", "the year ending in 2020", "card ending in 12", "the last four years",
        "last four digits", "account ending in 1,234", "last four: the end", "card ending in 4242x",
        "account ends in May", "the last 4 are here", "last 5 is 2.5", "story ending with 300",
        "numbers ending in 42", "last six months of 2020", "a number ending in zero", "card number 4242",
        "last three were 100%", "last four digits are 12345678", "account ended in 4242", "cards ending in 4242",
    ],
    accounts.social_handle: [
        "Twitter is great", "Instagram: what is it", "on Facebook 2020", "twitter: the bird", "Discord is down",
        "Skype: call me", "GitHub: merge it", "telegram from 1917", "steam is 100 degrees", "Twitter @ home", "@jo_b",
        "Facebook's @jo", "instagrams: @jo", "my LinkedIn is public", "TikTok: 15 seconds", "reddit: http://x.com",
        "signal is 5G", "Instagram is a1", "github is jo", "Twitter: @", "Xbox: One", "Steam: is on",
    ],
    accounts.code: [
        "B2B", "ABCDEFGH", "12345678", "abc12345", "MP3", "COVID-19", "AFG5674", "AFG5674Ga", "x-AFG5674G",
        "AFG5674G-1", "ABCD1234-EF", "A1", "1ST", "iPhone14Pro", "ABC1234", "A1B2C3D", "abcd1234", "ABCD 1234",
        "_ABCD1234", "ABCD1234e", "ABCDEFGH IJ", "12345678-A",
    ],
    accounts.password: [
        "the password is incorrect", "password", "passwords: abc", "password reset", "password?", "pass: 1234",
        "password is", "bypassword: abc", "password: ab", "password is required", "password manager",
        "pass the salt: now", "password: a", "my password is secret", "pwd", "the pass is valid", "password, please",
        "passwords = x", "passport: X123456", "I forgot my password is it", "password isn't 12",
    ],
    accounts.pin: [
        "pin 1234", "a pin number", "PIN 12", "bowling pin 300", "PIN is needed", "the pin is 12.5", "spin code 1234",
        "PIN 123456789", "pinned 1234", "area code 415", "source code 1234", "error code: 404", "OTP is sent",
        "door codes 1234", "PIN: 12:30", "CVV", "cv 123", "code 1234", "security codes: 1234", "PINs 1234",
        "my pin is lost",
    ],
}  # fmt: skip
