"""Vehicles: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, numbers

POSITIVES: dict[Recogniser, list[str]] = {
    numbers.plate: [
        "license plate ⟦7ABC123⟧", "his plate is ⟦AB12 CDE⟧.", "reg: ⟦LK53 XYZ⟧, silver Golf",
        "number plate ⟦ab12cde⟧ please",
        "Kennzeichen: ⟦B-MW 1234⟧", "plaque ⟦AB-123-CD⟧", "the car, registration ⟦KA 01 AB 1234⟧", "placa ⟦BRA2E19⟧ ou",
        "plates: ⟦MH12DE1433⟧", "plate number on the car: ⟦ABC-1234⟧", "reg no. ⟦WOR 516K⟧",
        "vehicle plate # ⟦8XYZ999⟧",
        "plate reads ⟦4471 KLM⟧", "license plate ⟦TX-1234⟧", "car reg: ⟦YN07 GHT⟧",
    ],
    numbers.chassis_number: [
        "⟦1HGCM82633A004352⟧", "sold ⟦1m8gdm9axkp042788⟧ today", "VIN: ⟦WAUZZZ8K9BA012345⟧.",
        "chassis no ⟦WVWZZZ1J3XW386752⟧", "(⟦5GZCZ43D13S812715⟧)",
    ],
    numbers.chassis_in_context: [
        "vin ⟦WAUZZZ8KXBA0123⟧", "VIN ends in ⟦BA012345⟧", "chassis number: ⟦AR-105-1234567⟧",
        "vehicle identification number is ⟦1HGCM82633A004353⟧",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    numbers.plate: [
        "plate of food", "license plate", "number plate 2012", "registered in 1990", "tag v1.2", "tag release-2",
        "7ABC123",
        "AB12 CDE", "plate: blue", "plates 12", "registration is open", "reg A", "template AB12 CDE", "a plate for 4",
        "registration 2021", "plate is dirty", "the tag is red", "tectonic plate 12", "tag team 2000",
        "tagged AB12 CDE",
        "license 12", "registration was on 12 May", "plate, 20 cm", "plate\n\n7ABC123", "silver-plated AB12CDE",
    ],
    numbers.chassis_number: [
        "1HGCM82633A004353", "1HGCM82633A00435", "1HGCM82633A0043522", "1HGCM8263IA004352", "x1HGCM82633A004352",
        "11111111111111111", "1HGCM82633A004352-1", "1HGCM82633AOO4352", "1HGCM82633A00435X", "ABCDEFGHJKLMNPRST",
        "12345678901234567", "-1HGCM82633A004352", "1HGCM 82633A004352", "VIN: WAUZZZ8K9BA01234",
        "VINWAUZZZ8K9BA012345",
        "WAUZZZ8K9BA012345", "vin number", "2G1WF5E34E1234567", "1M8GDM9A1KP042788", "a1b2c3d4e5f6g7h81", "chassis",
    ],
    numbers.chassis_in_context: [
        "vin rouge", "vehicle 12345678", "Vin Diesel", "chassis repair", "VIN: 123", "vehicle identification",
        "vin 2019",
        "vine 1HGCM82633A004352", "VIN\n\n12345678", "chassis is bent", "vin is missing", "coq au vin 12", "VIN: ?",
        "vin.",
        "the vin plate is here", "chassis No", "vehicle identification is needed", "vin 12_345678", "vinyl 12345678",
        "calvin 12345678", "chassis weighs 1200", "VIN: ABCDEFGH",
    ],
}  # fmt: skip
