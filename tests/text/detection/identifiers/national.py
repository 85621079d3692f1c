"""National identifiers: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, national

POSITIVES: dict[Recogniser, list[str]] = {
    national.NUMBERS["br.cpf"]: [
        "My CPF is ⟦113.586.606-62⟧.", "cpf: ⟦511.708.397-03⟧", "⟦297.340.775-38⟧ (CPF)",
        "CPF ⟦390.533.447-05⟧, as it says", "ask ⟦511.708.397-03⟧ first",
    ],
    national.NUMBERS["ar.cuit"]: [
        "My CUIT is ⟦27-68906000-0⟧.", "cuil: ⟦27-38939425-9⟧", "⟦27-82015258-7⟧ (CUIT)",
        "CUIT ⟦20-05536168-2⟧, as it says",
    ],
    national.NUMBERS["cl.rut"]: [
        "My RUT is ⟦15.261.998-7⟧.", "rol único: ⟦10.245.848-6⟧", "⟦16.149.056-3⟧ (RUT)",
        "RUT ⟦76.086.428-5⟧, as it says", "ask ⟦10.245.848-6⟧ first",
    ],
    national.NUMBERS["mx.curp"]: [
        "is ⟦GOLM850526MDFRRN07⟧.", "ID:⟦GELM980914MDFRRN05⟧", "(⟦GELM540707MDFRRN08⟧), or ⟦BOXW310820HNERXN09⟧",
    ],
    national.NUMBERS["ca.sin"]: [
        "My SIN is ⟦565 483 609⟧.", "social insurance number: ⟦577 191 133⟧", "⟦558 591 442⟧ (SIN)",
        "SIN ⟦123-456-782⟧, as it says",
    ],
    national.NUMBERS["tr.tckimlik"]: [
        "My TC kimlik no is ⟦38626746620⟧.", "TCKN: ⟦38282257614⟧", "⟦32498470478⟧ (TC kimlik no)",
        "TC kimlik no ⟦17291716060⟧, as it says",
    ],
    national.NUMBERS["za.idnr"]: [
        "My SA ID is ⟦9212205009089⟧.", "South African ID: ⟦5309085009082⟧", "⟦5601075009084⟧ (SA ID)",
        "SA ID ⟦7503305044089⟧, as it says",
    ],
    national.NUMBERS["il.idnr"]: [
        "My teudat zehut is ⟦732602388⟧.", "Israeli ID: ⟦910786243⟧", "⟦619645203⟧ (teudat zehut)",
        "teudat zehut ⟦3933742-3⟧, as it says",
    ],
    national.NUMBERS["in_.aadhaar"]: [
        "My Aadhaar is ⟦5667 1129 6702⟧.", "UIDAI: ⟦5309 5183 0730⟧", "⟦5497 7786 0357⟧ (Aadhaar)",
        "Aadhaar ⟦2341 2341 2346⟧, as it says",
    ],
    national.NUMBERS["cn.ric"]: [
        "is ⟦110105196811172771⟧.", "ID:⟦110105199203177919⟧", "(⟦110105197708317471⟧), or ⟦360426199101010071⟧",
    ],
    national.NUMBERS["kr.rrn"]: [
        "is ⟦590809-2858775⟧.", "ID:⟦541116-2895516⟧", "(⟦580412-2713085⟧), or ⟦971013-9019902⟧",
    ],
    national.NUMBERS["jp.in_"]: [
        "Her My Number is ⟦9438 4188 8725⟧.", "individual number: ⟦3100 2506 4681⟧", "⟦5944 8098 5173⟧ (My Number)",
        "My Number ⟦6214 9832 0257⟧, as it says",
    ],
    national.NUMBERS["au.tfn"]: [
        "My TFN is ⟦934 873 206⟧.", "tax file number: ⟦027 821 169⟧", "⟦888 159 594⟧ (TFN)",
        "TFN ⟦123 456 782⟧, as it says",
    ],
    national.NUMBERS["nz.ird"]: [
        "My IRD is ⟦058-631-856⟧.", "Inland Revenue: ⟦067-924-703⟧", "⟦066-397-890⟧ (IRD)",
        "IRD ⟦4909185-0⟧, as it says",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    national.NUMBERS["br.cpf"]: [
        "CPF 113.586.606-63", "CPF 811.708.397-03", "CPF 297.342.775-38", "CPF 113.586.606-6", "CPF 113.586.606-627",
        "CPF 4511.708.397-03", "CPF x297.340.775-38", "CPF 113.586.606-62q", "CPF 3,113.586.606-62",
        "CPF $511.708.397-03", "CPF 297.340.775-38-2", "CPF 113.586.606-62.5", "CPF 113.5_86.606-62",
        "CPF 511.\n708.397-03", "CPF 297  .340.775-38", "CPF 113xxxx.606-62", "CPF 511.078.397-03",
        "order 11358660662", "CPF\n51170839703", "29734077538", "xCPF 11358660662", "CPF 2 of 51170839703",
        "CPF which, as far as anyone here can tell, is 29734077538", "invoice no. 51170839703", "CPF unknown",
    ],
    national.NUMBERS["ar.cuit"]: [
        "CUIT 27-68906000-1", "CUIT 57-38939425-9", "CUIT 27-82035258-7", "CUIT 27-68906000-", "CUIT 27-68906000-07",
        "CUIT 427-38939425-9", "CUIT x27-82015258-7", "CUIT 27-68906000-0q", "CUIT 3,27-68906000-0",
        "CUIT $27-38939425-9", "CUIT 27-82015258-7-2", "CUIT 27-68906000-0.5", "CUIT 27-68_906000-0",
        "CUIT 27-3\n8939425-9", "CUIT 27-  82015258-7", "CUIT 27-xxxx6000-0", "CUIT 27-83939425-9",
        "order 27-68906000-0", "CUIT\n27-38939425-9", "27-82015258-7", "xCUIT 27-68906000-0",
        "CUIT 2 of 27-38939425-9", "CUIT which, as far as anyone here can tell, is 27-82015258-7",
        "invoice no. 27-38939425-9", "CUIT unknown",
    ],
    national.NUMBERS["cl.rut"]: [
        "RUT 15.261.998-8", "RUT 40.245.848-6", "RUT 16.141.056-3", "RUT 15.261.998-", "RUT 15.261.998-77",
        "RUT 410.245.848-6", "RUT x16.149.056-3", "RUT 15.261.998-7q", "RUT 3,15.261.998-7", "RUT $10.245.848-6",
        "RUT 16.149.056-3-2", "RUT 15.261.998-7.5", "RUT 15.26_1.998-7", "RUT 10.2\n45.848-6", "RUT 16.  149.056-3",
        "RUT 15.xxxx998-7", "RUT 10.425.848-6", "order 152619987", "RUT\n102458486", "161490563", "xRUT 152619987",
        "RUT 2 of 102458486", "RUT which, as far as anyone here can tell, is 161490563", "invoice no. 102458486",
        "RUT unknown",
    ],
    national.NUMBERS["mx.curp"]: [
        "ID GOLM850526MDFRRN08", "ID GELM280914MDFRRN05", "ID GOLM850526MDFRRN0", "ID GOLM850526MDFRRN077",
        "ID 4GELM980914MDFRRN05", "ID xGELM540707MDFRRN08", "ID GOLM850526MDFRRN07q", "ID 3,GOLM850526MDFRRN07",
        "ID $GELM980914MDFRRN05", "ID GELM540707MDFRRN08-2", "ID GOLM850526MDFRRN07.5", "ID GOLM8_50526MDFRRN07",
        "ID GELM\n980914MDFRRN05", "ID GEL  M540707MDFRRN08", "ID GOLxxxx526MDFRRN07", "ID GELM890914MDFRRN05",
        "GOLM850526XDFRRN07", "GOLM851326MDFRRN07", "GOLM850532MDFRRN07", "GOL850526MDFRRN07", "GOLM850526MDF",
        "GOLM8505260DFRRN07", "G0LM850526MDFRRN07", "GOLM850526MZZRRN07", "GOLM 850526 MDFRRN07", "Clave GOLM850526",
    ],
    national.NUMBERS["ca.sin"]: [
        "SIN 565 483 600", "SIN 877 191 133", "SIN 558 511 442", "SIN 565 483 60", "SIN 565 483 6097",
        "SIN 4577 191 133", "SIN x558 591 442", "SIN 565 483 609q", "SIN 3,565 483 609", "SIN $577 191 133",
        "SIN 558 591 442-2", "SIN 565 483 609.5", "SIN 565 4_83 609", "SIN 577 \n191 133", "SIN 558   591 442",
        "SIN 565xxxx 609", "SIN 577 911 133", "order 565 483 609", "SIN\n577 191 133", "558 591 442",
        "xSIN 565 483 609", "SIN 2 of 577 191 133", "SIN which, as far as anyone here can tell, is 558 591 442",
        "invoice no. 577 191 133", "SIN unknown",
    ],
    national.NUMBERS["tr.tckimlik"]: [
        "TC kimlik no 38626746621", "TC kimlik no 68282257614", "TC kimlik no 32498670478", "TC kimlik no 3862674662",
        "TC kimlik no 386267466207", "TC kimlik no 438282257614", "TC kimlik no x32498470478",
        "TC kimlik no 38626746620q", "TC kimlik no 3,38626746620", "TC kimlik no $38282257614",
        "TC kimlik no 32498470478-2", "TC kimlik no 38626746620.5", "TC kimlik no 38626_746620",
        "TC kimlik no 3828\n2257614", "TC kimlik no 324  98470478", "TC kimlik no 386xxxx6620",
        "TC kimlik no 32882257614", "order 38626746620", "TC kimlik no\n38282257614", "32498470478",
        "TC kimlik no 2 of 38282257614", "TC kimlik no which, as far as anyone here can tell, is 32498470478",
        "invoice no. 38282257614", "TC kimlik no unknown",
    ],
    national.NUMBERS["za.idnr"]: [
        "SA ID 9212205009080", "SA ID 8309085009082", "SA ID 5601077009084", "SA ID 921220500908",
        "SA ID 92122050090897", "SA ID 45309085009082", "SA ID x5601075009084", "SA ID 9212205009089q",
        "SA ID 3,9212205009089", "SA ID $5309085009082", "SA ID 5601075009084-2", "SA ID 9212205009089.5",
        "SA ID 92122_05009089", "SA ID 5309\n085009082", "SA ID 560  1075009084", "SA ID 921xxxx009089",
        "SA ID 5039085009082", "order 9212205009089", "SA ID\n5309085009082", "5601075009084",
        "SA ID 2 of 5309085009082", "SA ID which, as far as anyone here can tell, is 5601075009084",
        "invoice no. 5309085009082", "SA ID unknown",
    ],
    national.NUMBERS["il.idnr"]: [
        "teudat zehut 732602389", "teudat zehut 210786243", "teudat zehut 619665203", "teudat zehut 73260238",
        "teudat zehut 7326023887", "teudat zehut 4910786243", "teudat zehut x619645203", "teudat zehut 732602388q",
        "teudat zehut 3,732602388", "teudat zehut $910786243", "teudat zehut 619645203-2", "teudat zehut 732602388.5",
        "teudat zehut 73260_2388", "teudat zehut 9107\n86243", "teudat zehut 619  645203", "teudat zehut 732xxxx88",
        "teudat zehut 901786243", "order 732602388", "teudat zehut\n910786243", "619645203",
        "xteudat zehut 732602388", "teudat zehut 2 of 910786243",
        "teudat zehut which, as far as anyone here can tell, is 619645203", "invoice no. 910786243",
        "teudat zehut unknown",
    ],
    national.NUMBERS["in_.aadhaar"]: [
        "Aadhaar 5667 1129 6703", "Aadhaar 8309 5183 0730", "Aadhaar 5497 7706 0357", "Aadhaar 5667 1129 670",
        "Aadhaar 5667 1129 67027", "Aadhaar 45309 5183 0730", "Aadhaar x5497 7786 0357", "Aadhaar 5667 1129 6702q",
        "Aadhaar 3,5667 1129 6702", "Aadhaar $5309 5183 0730", "Aadhaar 5497 7786 0357-2", "Aadhaar 5667 1129 6702.5",
        "Aadhaar 5667 _1129 6702", "Aadhaar 5309\n 5183 0730", "Aadhaar 549  7 7786 0357", "Aadhaar 566xxxx29 6702",
        "Aadhaar 5039 5183 0730", "order 5667 1129 6702", "Aadhaar\n5309 5183 0730", "5497 7786 0357",
        "xAadhaar 5667 1129 6702", "Aadhaar 2 of 5309 5183 0730",
        "Aadhaar which, as far as anyone here can tell, is 5497 7786 0357", "invoice no. 5309 5183 0730",
        "Aadhaar unknown",
    ],
    national.NUMBERS["cn.ric"]: [
        "ID 110105196811172772", "ID 410105199203177919", "ID 110105197908317471", "ID 11010519681117277",
        "ID 1101051968111727717", "ID 4110105199203177919", "ID x110105197708317471", "ID 110105196811172771q",
        "ID 3,110105196811172771", "ID $110105199203177919", "ID 110105197708317471-2", "ID 110105196811172771.5",
        "ID 11010_5196811172771", "ID 1101\n05199203177919", "ID 110  105197708317471", "ID 110xxxx96811172771",
        "ID 101105199203177919", "110105196813172771", "110105196811322771", "110105196811172772",
        "11010519681117277", "1101051968111727711", "010105196811172771", "110105 19681117 2771",
        "11010519681117277Y", "110105-19681117-2771", "990105196811172771", "110105681117277",
    ],
    national.NUMBERS["kr.rrn"]: [
        "ID 590809-2858776", "ID 841116-2895516", "ID 580412-4713085", "ID 590809-285877", "ID 590809-28587757",
        "ID 4541116-2895516", "ID x580412-2713085", "ID 590809-2858775q", "ID 3,590809-2858775", "ID $541116-2895516",
        "ID 580412-2713085-2", "ID 590809-2858775.5", "ID 59080_9-2858775", "ID 5411\n16-2895516",
        "ID 580  412-2713085", "ID 590xxxx2858775", "ID 514116-2895516", "590809-2858776", "591309-2858775",
        "590832-2858775", "590809 2858775", "590809-285877", "5908092858775", "590809/2858775", "59080-92858775",
        "590809--2858775", "590809-28587755", "590809–2858775",
    ],
    national.NUMBERS["jp.in_"]: [
        "My Number 9438 4188 8726", "My Number 6100 2506 4681", "My Number 5944 8018 5173", "My Number 9438 4188 872",
        "My Number 9438 4188 87257", "My Number 43100 2506 4681", "My Number x5944 8098 5173",
        "My Number 9438 4188 8725q", "My Number 3,9438 4188 8725", "My Number $3100 2506 4681",
        "My Number 5944 8098 5173-2", "My Number 9438 4188 8725.5", "My Number 9438 _4188 8725",
        "My Number 3100\n 2506 4681", "My Number 594  4 8098 5173", "My Number 943xxxx88 8725",
        "My Number 3010 2506 4681", "order 9438 4188 8725", "My Number\n3100 2506 4681", "5944 8098 5173",
        "xMy Number 9438 4188 8725", "My Number 2 of 3100 2506 4681",
        "My Number which, as far as anyone here can tell, is 5944 8098 5173", "invoice no. 3100 2506 4681",
        "My Number unknown",
    ],
    national.NUMBERS["au.tfn"]: [
        "TFN 934 873 207", "TFN 327 821 169", "TFN 888 179 594", "TFN 934 873 20", "TFN 934 873 2067",
        "TFN 4027 821 169", "TFN x888 159 594", "TFN 934 873 206q", "TFN 3,934 873 206", "TFN $027 821 169",
        "TFN 888 159 594-2", "TFN 934 873 206.5", "TFN 934 8_73 206", "TFN 027 \n821 169", "TFN 888   159 594",
        "TFN 934xxxx 206", "TFN 072 821 169", "order 934 873 206", "TFN\n027 821 169", "888 159 594",
        "xTFN 934 873 206", "TFN 2 of 027 821 169", "TFN which, as far as anyone here can tell, is 888 159 594",
        "invoice no. 027 821 169", "TFN unknown",
    ],
    national.NUMBERS["nz.ird"]: [
        "IRD 058-631-857", "IRD 367-924-703", "IRD 066-317-890", "IRD 058-631-85", "IRD 058-631-8567",
        "IRD 4067-924-703", "IRD x066-397-890", "IRD 058-631-856q", "IRD 3,058-631-856", "IRD $067-924-703",
        "IRD 066-397-890-2", "IRD 058-631-856.5", "IRD 058-6_31-856", "IRD 067-\n924-703", "IRD 066  -397-890",
        "IRD 058xxxx-856", "IRD 076-924-703", "order 058-631-856", "IRD\n067-924-703", "066-397-890",
        "xIRD 058-631-856", "IRD 2 of 067-924-703", "IRD which, as far as anyone here can tell, is 066-397-890",
        "invoice no. 067-924-703", "IRD unknown",
    ],
}  # fmt: skip
