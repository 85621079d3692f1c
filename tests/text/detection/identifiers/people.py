"""Social security numbers, dates of birth and names: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, dates, names, national

POSITIVES: dict[Recogniser, list[str]] = {
    national.social_security_number: [
        "is ⟦494-33-0748⟧.", "⟦494 33 0748⟧", "SSN:⟦123.45.6789⟧", "⟦912-70-1234⟧",
    ],
    national.social_security_number_in_context: [
        "SSN ⟦078051120⟧", "my social security number is ⟦078 05 1120⟧.", "social security no. ⟦078-05-1120⟧",
        "the last four of the SSN: ⟦1120⟧", "ssn=⟦000-12-3456⟧", "***-**-⟦6789⟧ or xxx-xx-⟦6789⟧",
    ],
    dates.date_of_birth: [
        "DOB: ⟦03/04/1980⟧", "d.o.b. ⟦1980-03-04⟧", "Date of birth is ⟦4 March 1980⟧",
        "born on ⟦March 3rd, 1980⟧ in Rome", "my birthday is ⟦June 5⟧", "(born ⟦12 May 1901⟧)",
        "She was born in ⟦1975⟧", "Anna Karlsson (b. ⟦4 March 1980⟧)",
        "my birthday's on ⟦June 5th⟧; born in ⟦June of 1980⟧", "DOB (dd/mm/yyyy): ⟦03/04/1980⟧",
        "Date of birth: ⟦3-Mar-1980⟧", "born on Tuesday, the ⟦3rd of March 1980⟧",
        "birthdate ⟦19800304⟧; DOB ⟦03 04 1980⟧", "his birthday is ⟦5/6⟧.",
    ],
    dates.date_of_birth_abroad: [
        "Geburtsdatum: ⟦03.04.1980⟧", "geboren am ⟦3. März 1980⟧ in Bonn", "née le ⟦3 mars 1980⟧",
        "fecha de nacimiento: ⟦3 de abril de 1980⟧", "data di nascita ⟦03/04/1980⟧",
    ],
    names.name_after_title: [
        "mr. ⟦elliott⟧ flew", "Dr ⟦Okafor⟧, MS. ⟦Nguyen⟧", "Prof. ⟦J. K. O'Neill⟧", "Mrs ⟦Achterberg⟧ left",
    ],
    names.name_introduced: [
        "my name is ⟦priya⟧.", "Her maiden name is ⟦Sandgreen⟧", "his surname's ⟦de-Witt⟧",
        "My full name is ⟦Anna Maria Silva⟧, and",
    ],
    dates.age: [
        "a ⟦34yo⟧ man", "she is ⟦34 years old⟧.", "a ⟦34-year-old⟧ nurse", "I'm ⟦41 y/o⟧",
        "⟦71 years of age⟧, retired", "⟦thirty-four years old⟧",
        "⟦5 yr old⟧ son",
    ],
    dates.age_in_note: [
        "Anna Lopez, ⟦26 yrs⟧, nurse", "Pt: A.L.; ⟦56⟧ F; asthma", "Lopez, ⟦8y⟧, left", "the caller, ⟦41⟧ male, said",
    ],
    dates.age_after_word: [
        "aged ⟦71⟧", "Age: ⟦34⟧", "my age is ⟦34⟧", "at the age of ⟦90⟧", "Anna, age ⟦9⟧,", "she just turned ⟦60⟧",
        "turning ⟦50⟧ in May",
        "I'm ⟦34⟧, and tired",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    national.social_security_number: [
        "000-12-3456", "666-12-3456", "123-00-4567", "123-45-0000", "123-45-678", "123-456-789", "12-34-56789",
        "1123-45-6789", "123-45-67890", "123-45 6789", "123-45-6789-1", "2010-05-1234", "123-45-67", "123/45/6789",
        "123_45_6789", "123--45--6789", "123 456 789", "a123-45-6789", "123-45-6789a", "12-345-6789", "1234-56-7890",
        "-123-45-6789", "0-123-45-6789", "123.45.6789.0",
    ],
    national.social_security_number_in_context: [
        "social security in 1935", "social security", "SSN 123", "SSN 12345678", "SSN 1234567890", "SSN in 2010",
        "social security is $1200", "social security pays 1,200", "class number 1234", "ssns 078051120",
        "SSN\n078051120", "antisocial security 1234", "social security was signed in 1935", "SSN: none",
        "social security card", "SSN is 12-34", "the ssn field has 9 digits", "ssn 12345", "social worker 078051120",
        "social security €1200", "SSN 2020", "ssnx 078051120",
    ],
    dates.date_of_birth: [
        "born to run", "born in Rome", "date of issue: 03/04/1980", "stubborn 1980", "birthday cake", "DOB:",
        "born 3 times", "on March 3, 1980", "newborn 12", "born on the bayou", "birthday 5", "date of birth unknown",
        "born 1850 grams", "born free", "reborn 1980", "born at 5", "birthday on Monday", "born in winter",
        "DOBs 1980", "born March", "place of birth: 1980 Elm", "birthrate 1980", "born 19801",
    ],
    dates.date_of_birth_abroad: [
        "Geburtstag feiern", "geboren in Bonn", "date de fin: 03/04/1980", "fecha de inicio: 03/04/1980",
        "née Dupont", "née le matin", "nato il giorno", "NATO 03/04/1980", "nacido el martes",
        "data di scadenza 03/04/1980", "fecha: 3 de abril de 1980", "3. März 1980", "geboren 1980",
        "Geburtsdatum unbekannt", "geb. Müller", "nascido em Lisboa", "Geburtsdatum; siehe 03.04.1980",
        "ungeboren am 03.04.1980", "fecha de nacimientos 03/04/1980", "geboren am 3. März",
        "Geburtsdatum: 03,04,1980",
    ],
    names.name_after_title: [
        "mr.", "Mr. 5", "Mr. and", "dr. of", "ms the", "Mrs.", "hmr smith", "drs smith", "a.ms file", "Dr.  Smith",
        "ms\nsmith", "10 mr, x", "Mr", "Dr. 42", "prof. in", "xmr Smith", "MS-DOS", "Ms. a", "mr.smith@x",
        "Mr\tSmith", "Dr, Smith", "Mrs-Smith", "MR  SMITH",
    ],
    names.name_introduced: [
        "my name is", "my name is the", "his name is not known", "the name is priya", "my username is priya",
        "my name was priya", "your name is priya", "her name is on it", "my names is priya", "My name is a",
        "my name is 5", "name is priya", "our name is Priya", "my name is it", "my name, Priya", "his names is Priya",
        "her name is  Priya", "their name is that", "his name is\nPriya", "my name isPriya", "my first is Priya",
        "your last name is Smith", "my name is all over it",
    ],
    dates.age: [
        "5 years old car", "2 years experience", "a 10-year-old whisky", "34 years", "the 100-year-old building",
        "years old", "yo 34",
        "34 yolks", "134.5 years old", "34 years older", "two years later", "200 years old", "34 months old",
        "$34 yo", "a 3-year plan",
        "34 y", "a 12 years old company", "34-year", "10:34 yo", "x34yo", "old 34", "a year old",
    ],
    dates.age_in_note: [
        "26 yrs", "for 26 yrs, he", "56 F", "it was 56 F; cold", "lost, 26 yrs ago", "rooms, 3 M and 2 F", "a, 26 y",
        "grade A, 8 year, x", "$1,400; 56 FM;", "x, 190 F, y", "x; 56F8;", "size, 12 M", "5, 6, 7", "x, 26 years, y",
        "x,26 yrs,", "26 yrs, 12 FM,", "12, F, M", "temp, 98.6 F,", "row 3; 4; M;", "x, 200 yrs, y",
    ],
    dates.age_after_word: [
        "aged cheese", "page 34", "age of 1000", "under the age of 18", "adults aged 18", "aged 30 days",
        "the ice age", "turned 180 degrees",
        "turned 50%", "I'm 34 percent sure", "turn 34", "ages 12", "age 34", "aged 12.5", "aged 150",
        "I'm 12 miles away", "over the age of 65",
        "age:", "stage: 4", "managed 34", "turned 34 pages", "im 5",
    ],
}  # fmt: skip
