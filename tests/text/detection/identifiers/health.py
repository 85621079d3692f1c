"""Health: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, health

POSITIVES: dict[Recogniser, list[str]] = {
    health.health_term: [
        "she has ⟦type 2 diabetes⟧ and ⟦asthma⟧.", "on ⟦metformin 850mg⟧ and ⟦Ramipril 5 mg od⟧",
        "⟦Crohn’s disease⟧, stable",
        "two ⟦seizures⟧ last week", "⟦post-traumatic stress disorder⟧", "yes, ⟦ptsd⟧", "his ⟦migraines⟧ are back",
        "takes ⟦sertraline 50mg daily⟧.", "⟦HIV positive⟧ since 2010", "⟦COPD⟧/⟦CKD⟧", "⟦insulin 10 units⟧",
        "⟦BIPOLAR⟧",
        "had a ⟦heart\nattack⟧", "⟦co-codamol⟧ 30/500",
    ],
    health.health_term_in_context: [
        "hx of ⟦anxiety⟧", "diagnosed with ⟦cancer⟧ in 2019", "c/o ⟦back pain⟧ and", "she has had a ⟦stroke⟧",
        "my ⟦depression⟧",
        "allergic to ⟦peanuts⟧", "suffers from bad ⟦allergies⟧", "dx: ⟦MS⟧", "a ⟦cancer⟧ patient",
        "presented with severe ⟦headaches⟧", "i've got the ⟦flu⟧",
    ],
    health.clinical_note: [
        "Dx: ⟦otosclerosis⟧.", "allergic to ⟦kiwi fruit⟧ and", "diagnosed with ⟦shermann syndrome⟧ last year",
        "PMH: ⟦polymyositis⟧, fine", "c/o ⟦itchy eyes⟧ since Monday", "allergies: ⟦elastoplast⟧",
    ],
    health.medical_record: [
        "MRN ⟦00482913⟧", "medical record no. ⟦A-48291⟧,", "patient id: ⟦P0044812⟧", "NHS number ⟦943 476 5919⟧",
        "mrn: ⟦4471-882⟧ seen today", "Patient #⟦448120⟧", "hospital number ⟦H1234567⟧.", "Medicare ⟦1EG4-TE5-MK73⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    health.health_term: [
        "a cold day", "fit and well", "the depression of 1929", "a stroke of luck", "Cancer the sign", "goutte",
        "hyper tense",
        "diabetology", "the aid worker", "feeling blue", "he is well", "metformins850", "asthmatics anonymous",
        "hernial",
        "seizured", "malarial", "the commas", "autistic", "crohn", "type 2 fonts", "heart and attack", "x-ray",
        "my back",
    ],
    health.health_term_in_context: [
        "a cold day", "the depression of 1929", "stroke of a pen", "cancer", "Tropic of Cancer", "anxiety about exams",
        "a fit body", "burn the toast", "pain au chocolat", "ms 12", "me too", "hx of me",
        "diagnosed with ms-dos errors",
        "the stress of a beam", "gas in a mine", "cold patients", "my fever dream", "diagnosed by cancer",
        "the flu season",
        "history of art", "our depression", "he has an injurious", "rash decisions", "weight loss tips",
    ],
    health.clinical_note: [
        "rx", "the diagnosis", "diagnosis is unclear", "allergic to it", "diagnosed with a", "Dx: none",
        "allergies: nkda",
        "diagnosed at 40", "allergic reactions", "meds are late", "I am allergic to most foods", "hx", "dx 12",
        "c/o 12 Elm",
        "allergic to 3 things", "diagnosis: unknown", "misdiagnosed with measles", "diagnosed with the",
        "indication of it", "allergy: x", "presenting complaint", "rx: 12 tablets", "nonallergic to kiwi",
    ],
    health.medical_record: [
        "MRN", "patient 12", "NHS in 1948", "medical record", "patient id", "chart number one", "hospital 12",
        "lab 12345",
        "patients 448120", "medicare for all", "patient is 34", "MRN: none", "medical records of 2019", "nhs 12",
        "mrn 12_3456",
        "chart no 1", "patience 448120", "hospital number", "health plan 2021", "rx 1234567", "medical recorder 448120",
    ],
}  # fmt: skip
