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
        "my order number is ⟦ABC-12345⟧.", "ticket ⟦INC-204418⟧ is open", "claim no. ⟦22-CLM-00918⟧",
        "badge no ⟦B-4471⟧", "order ⟦4471-882093⟧", "case ref ⟦HX-4471902⟧",
        "RMA ⟦88-1204⟧, tracking: ⟦1Z999AA10123456784⟧",
        "employee id ⟦E00417⟧; incident #⟦88121⟧", "claim (⟦CLM-00918⟧)", "work order ⟦WO-88123⟧",
        "member no: ⟦00-4471-2⟧",
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
    accounts.further_password: [
        "⟦Guest-Mango77!⟧ or if that fails try ⟦Lounge_2024x⟧",
        "wifi: ⟦Guest-Mango77!⟧ or if that fails try ⟦Lounge_2024x⟧", "password reset done, use ⟦tulip_Canoe7⟧ now",
        "pw ⟦hunter2_x⟧ then", "try ⟦Sunny#Day42⟧ as the login",
    ],
    accounts.other_password: [
        "password is hunter2, old one was ⟦Mango77⟧.", "Password: s3cret, the previous password was ⟦tulip⟧",
        "my password is abc12345 and the backup one is ⟦xyz-999⟧",
    ],
    accounts.further_pin: [
        "my pin was 4093 and I want to change it to ⟦7718⟧", "door code: 4471, new one is ⟦8820⟧.",
        "PIN 1234 or ⟦4321⟧",
    ],
    accounts.entry_code: [
        "the lockbox code is ⟦4471⟧", "gate code: ⟦#1420⟧", "garage code ⟦0912*⟧", "Safe combination: ⟦12-33-07⟧",
        "passcode is ⟦004417⟧", "front door code for the flat is ⟦C1420⟧", "alarm code is now ⟦8812⟧.",
    ],
    accounts.security_answer: [
        "answer to my security question is ⟦Martinez⟧", "answer to security question: ⟦Rex the dog⟧.",
        "security answer is ⟦Livingston⟧", "my first pet was called ⟦Biscuit⟧", "memorable word: ⟦tulip⟧, thanks",
    ],
    accounts.handle: [
        "I'm ⟦@dvolk_91⟧ there", "ask ⟦@maria.k⟧!", "(⟦@jo_b⟧) and ⟦@anna⟧, too", "⟦@kbjornstad⟧ can you look?",
    ],
    accounts.speaker: [
        "⟦maria_k⟧: are you coming tonight", "<⟦dvolk91⟧>: not before nine I think", "hi\n⟦jo.b2⟧: who is there then",
    ],
    accounts.user: [
        "user is ⟦kbjornstad⟧.", "my user is ⟦jdoe42⟧, thanks", "login is ⟦svc_backup⟧", "user=⟦jdoe⟧ host=x",
        "alias: ⟦dvolk_91⟧",
        "account name is ⟦hmiller⟧", "user: ⟦anna88⟧",
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
    accounts.further_password: [
        "Guest-Mango77! or Lounge_2024x", "password reset for iPhone14", "the wifi is slow", "password: hunter2",
        "try again 12",
        "pass the COVID-19 test", "login at 10:30", "wifi on 2021-05-12", "password for jo@example.com",
        "compass B2B_x12",
        "try https://x.com/a_1B", "password!\nLounge_2024x", "login page v2.1", "pass 100% now", "try #1 pick",
        "try 4,000+ now",
        "wifi 802.11ac", "creds are in the vault", "pass rate 12_000", "try it on MacBook-Pro", "login with SSO2",
    ],
    accounts.other_password: [
        "old one was Mango77", "password is hunter2", "password is needed, old one was x123", "password: abc, new",
        "new one is tulip",
        "password: abc. The new policy is long", "password: abc, old", "pass: abc, old one was tulip",
        "password: abc\n\nnew pw",
        "password reset, old one was fine", "password, and the other one is fine", "passwords: abc, old one is tulip",
        "pwd",
        "password: abc, older one was tulip", "password: abc, new car is red", "password: abc, old one",
        "the old one was Mango77",
        "password: abc, a new one was set", "password: abc, last time was ok", "second one is tulip",
        "previous password was Mango",
    ],
    accounts.further_pin: [
        "my pin is 4093", "change it to 7718", "PIN 4093, call 911", "pin 4093 or 7718", "my pin is 4093 for $7718",
        "PIN 40935 to 7718",
        "PIN: 4093\nroom 7718", "my pin is 4093, at 10:30", "the pin is lost, try 7718",
        "my pin is 4093 on 12/05/2021", "code 7718",
        "my pin was 4093 (7718x)", "door code: 4471, room 88", "OTP 551200 is 6 digits", "my pin is 4093; id A7718",
        "the pins 4093",
        "my pin is 4093, 77.18", "my pin is 4093-7718", "zip code 4471 8820", "my pin is 4093 and 77180 points",
        "pins", "pin 1 2",
    ],
    accounts.entry_code: [
        "zip code 4471", "area code: 415", "source code 4471", "lock code", "error code 4471",
        "building code of 1990", "safe: 4471",
        "the door code is wrong", "combination of 1234", "gate A1234", "door codes", "QR code: 4471",
        "country code: 0044", "locker 4471",
        "garage codes 4471", "postal code 4471", "building 4471", "entry code 12", "entry code: 123456789",
        "safe code: 12.5", "code is 4471",
        "dress code: 1920", "alarm at 0600",
    ],
    accounts.security_answer: [
        "security question", "answer the security question", "answer to my question is Martinez",
        "security answer is not right",
        "the answer is Martinez", "answer to the security question", "first pet", "security answer", "first car",
        "memorable word", "favorite color is red", "my first pet died", "security answer is wrong", "an answer: yes",
        "security is tight",
        "answers to security questions: many", "childhood was happy", "first school day", "safe words: none",
        "challenge answered",
        "in other words: tulip", "code words", "security answer is required",
    ],
    accounts.handle: [
        "jo@example.com", "@types/node", "  @property", "x\n@app.route(1)", "@media(x)", "meet @ noon", "@5pm", "a@b",
        "@here", "@everyone",
        "@param x the", "git@github.com", "@@x", "x\n @staticmethod\ndef f", "@example.com", "@angular/core", "50@3",
        "@",
        "x\n@Override\npublic", "@home", "@all", "user@host", "@decorator(1)", "pkg@latest",
    ],
    accounts.speaker: [
        "maria: are you coming tonight", "user_id: is a number here", "max_len: three or more",
        "step_1: open the box", "a1: b c d", "jo_b:",
        "question_2: who is there now", "see maria_k: are you coming", "maria_k : are you", "http://a_b: c d e",
        "12_34: a b c",
        "api_key: none of yours here", "Chapter1: the end is near", "note_2: see the other page",
        "jo_b:hello there you", "jo_b: hi",
        "file_name: of the first one", "room2: is on the left", "table_3: all of the results",
        "day2: we went to Rome", "maria_k said: hi",
    ],
    accounts.user: [
        "the user is not here", "user is angry", "user: hello", "users are kbjornstad", "login is required",
        "the user is logged in", "user",
        "user is trying", "user is able", "login page", "user is responsible", "superuser is kbjornstad",
        "user agent", "alias", "uid",
        "user is a", "user was notified", "nick of time", "user is the boss", "user: I want it", "login is broken",
        "user is in",
        "user is likely to", "account is good", "the user is unsure of it",
    ],
}  # fmt: skip
