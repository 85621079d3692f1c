"""Street addresses and postcodes: what is found, and what only looks like it."""

from atdp_cli.text.detection.identifiers import Recogniser, places

POSITIVES: dict[Recogniser, list[str]] = {
    places.street_address: [
        "I live at ⟦9097 Kennedy St Baltimore, NY 98045⟧", "⟦2773 Kennedy St, Baltimore, MI, 65392⟧", "⟦12 Main St⟧",
        "⟦1600 Pennsylvania Avenue⟧", "of ⟦8155 2nd Ave⟧ have been", "⟦221B Baker Street⟧ is",
        "⟦5308 Circle Drive  Jacksonville, CA 55194⟧", "⟦350 Fifth Ave., Suite 21, New York, New York 10118⟧.",
        "⟦77 N. Martin Luther King Blvd, Apt 4B⟧", "at ⟦12/45 George St⟧, Perth",
        "at ⟦14 Rosewood Gardens⟧, or ⟦7 Tanner's Mews⟧, Bath",
    ],
    places.street_address_lower_case: [
        "⟦365 main street san mateo texas 94401⟧", "at ⟦12 oak hill rd⟧", "⟦1 1st ave⟧", "near ⟦9 maple avenue⟧, and",
        "from ⟦3 larkrise mews⟧ BS99 1ZZ", "at ⟦41 alder grove⟧",
    ],
    places.flat_in_house: [
        "put ⟦flat 6 hollis court⟧ as reference", "at ⟦Flat 2b, Ashcombe House⟧, Leeds", "⟦unit 9, 14 quarry lane⟧",
        "⟦apt #12 old mill road⟧ please", "in ⟦Apartment 31 Beacon Tower⟧.",
    ],
    places.numbered_road: [
        "a farm at ⟦4512 County Road 12⟧.", "⟦1200 US Highway 61, Dubuque, IA 52001⟧",
        "⟦RR 2 Box 15⟧, or ⟦HC 61, Box 1204A⟧", "⟦88 State Route 9⟧",
    ],
    places.street_address_french: [
        "at ⟦1 rue de Rivoli⟧.", "⟦12, rue de la Paix⟧, Paris", "⟦5 bis, avenue Victor Hugo⟧ or ⟦27 quai d'Orsay⟧",
    ],
    places.street_address_number_last: [
        "in der ⟦Hauptstraße 12⟧ und", "at ⟦Via Garibaldi 41⟧.", "⟦Rue de la Paix 5⟧",
        "⟦Lindenallee 7b⟧ ⟦Nieuwe Keizersgracht 58⟧", "⟦Petőfi Sándor utca 3⟧", "⟦12 Hämeenkatu 9, Apt. 4⟧",
    ],
    places.flat_or_suite: [
        "in ⟦Suite 464⟧,", "⟦Apt. 117⟧", "⟦apt #12B⟧", "⟦apartment 5⟧",
    ],
    places.address_around_flat: [
        "at ⟦5570 Kaarikatu 32 Apt. 353⟧ now", "⟦17 Los Robles\n Suite 8\n Lima\n Peru 15001⟧",
        "> ⟦9 Marina View\n> Unit 4\n> Singapore\n> Singapore 18960⟧\n", "⟦8 Elm Gardens, Flat 3⟧",
    ],
    places.military_address: [
        "⟦PSC 1234, Box 5678\nAPO AP 96278⟧.", "⟦Unit 2050 Box 4190, APO AE 09501⟧",
        "⟦USS Nimitz\nFPO AP 96620-2820⟧", "to ⟦DPO, AE 09498⟧", "send to ⟦CMR 415 Box 3110, APO AE 09114⟧",
    ],
    places.post_box: [
        "⟦P.O. Box 123⟧", "to ⟦PO box 9⟧,", "⟦PSC 3294, Box 9168⟧", "⟦P. O. Box 7781⟧.",
    ],
    places.zip_in_context: [
        "My zip code is ⟦14224⟧", "ZIP: ⟦14224-1234⟧.", "postcode ⟦SW1A 1AA⟧", "zipcode=⟦3520⟧",
        "Postal code: ⟦K1A 0B1⟧", "ZIP: ⟦7412 SL⟧, postal code ⟦31-589⟧ or postcode ⟦114 55⟧", "zip ⟦14224⟧ is",
    ],
    places.zip_after_state: [
        "Beverly Hills, CA ⟦90210⟧", "NY, ⟦10001-1234⟧.", "Austin, TX ⟦78701⟧, USA",
    ],
    places.postcode: [
        "in ⟦SW1A 1AA⟧.", "⟦M1 1AE⟧", "⟦EC1A 1BB⟧", "⟦K1A 0B1⟧", "to ⟦D02 AF30⟧.", "at ⟦B33 8TH⟧, near ⟦V6B 1A1⟧",
    ],
    places.coordinates: [
        "at ⟦48.8584, 2.2945⟧.", "⟦-33.8688,151.2093⟧", "⟦48.8566° N, 2.3522° E⟧", "⟦40°26'46\"N 79°58'56\"W⟧",
        "⟦9 ° 25 ′ 45 ″ S 160 ° 3 ′ 4 ″ E⟧",
        "⟦N48.8566 E2.3522⟧", "maps/@⟦51.5074,-0.1278⟧,17z", "near ⟦57° 53′ N⟧",
    ],
    places.coordinates_in_context: [
        "lat: ⟦48.85⟧, lng: ⟦2.35⟧", "GPS ⟦48.85, 2.35⟧", '"latitude": ⟦-33.8688⟧', "coordinates are ⟦59.91,10.75⟧.",
    ],
}  # fmt: skip

NEAR_MISSES: dict[Recogniser, list[str]] = {
    places.street_address: [
        "12 Angry Men", "5 minutes", "Main Street", "In 1945 the Street", "$12 Wall Street", "3.5 Main St",
        "12 main st", "Wall Street 12", "1 Way", "40 Years Later", "20 Questions", "12 Monkeys",
        "7 Wonders of the World", "3 Days on the road", "24 Hours", "1st Street", "90 Degrees Way2", "100 Best Songs",
        "2.5 Oak Drive", "1945 was the Way", "16 Candles, Street", "€20 Oak Road",
    ],
    places.street_address_lower_case: [
        "4 lane road", "a 2 way street", "10 mile road", "5 minute lane", "3 people", "12 of the road",
        "the main street", "8 the avenue", "2 streets", "12 Main St", "6 block street", "2 way street",
        "20 minutes road", "6 miles of road", "5 of the street", "100 years road", "12 and a lane", "the 5 avenue",
        "7 car lane", "$50 oak street", "12 oak streets", "12 oak roadmap",
    ],
    places.flat_in_house: [
        "flat 6", "a flat 6 percent", "unit 9 test results", "unit 3 in the street", "flat court", "unit 12",
        "flat 6 and 7", "unit 9: tower of london", "flatter 6 hill court", "unit 5 the year of our lord 1200",
        "apt 4", "flat 6% court", "flat rate 6", "unit 9 hollis courts", "unit 9\nhollis court", "apt 12345 elm road",
        "unit b elm road", "flat 3.5 oak road", "a unit 9 to 12 lane", "unit 7 roadmap",
    ],
    places.numbered_road: [
        "Highway 61", "Route 66", "county road 12", "5 miles on the highway 61", "12 routes 5", "3 fm radios",
        "on US Highway 61", "RR 2", "HC 61", "2 highways 61", "12 County Road", "$12 route 66", "12 Route A",
        "rr box 15", "Box 15, RR 2", "105.7 FM 12", "State Route 9", "12 highway 61:30", "8 route planners 5",
        "1.5 Highway 61", "RR 2 Boxes 15", "12 Road 5",
    ],
    places.street_address_french: [
        "rue de Rivoli", "rue de Rivoli 1", "1 rue", "3 routes", "12 rue the day", "5 avenue q", "1789 en France",
        "3 cours de danse", "24 place of birth", "2 route planners", "$5 avenue Foch", "1.5 rue Lepic",
        "12 rues de Paris", "5 de la Paix", "the 12 avenues Foch", "3 boulevard theatres", "8 quais de Seine",
        "5 places in Paris", "2 passages by Hugo", "rue 5 Mai", "12\n\n\nrue Lepic", "7 chemin de fer",
        "-4 rue Lepic", "4: rue Lepic",
    ],
    places.street_address_number_last: [
        "Via", "via email 3", "Watergate 1972", "Katie 12", "Rue Morgue 1841", "the Hauptstraße", "Hauptstraße 12:30",
        "Platz 5", "necktie 5", "Avenue Q 2003", "Golden Gate 5", "hauptstraße 12", "gasse 5", "ul. 5",
        "via the app 5", "Rue 5", "the Damm 5", "street 12", "Avenue 5", "Calle ocho", "Corso Italia", "strasse 12",
        "Bergweg 12.5", "Hauptstraße 1999",
    ],
    places.flat_or_suite: [
        "a suite of rooms", "Suite Francaise", "apt to 5", "en suite", "apartment", "aptly 5", "apt 123456",
        "suites 12", "hotel suite", "suite no 5", "apt", "Apt.5", "Suite A", "suite 5th", "apartments 5",
        "ste. Marie", "apt for 5", "suite # 5", "Suite 123ABC", "adapt 5", "bsuite 5",
    ],
    places.address_around_flat: [
        "12 Angry Men", "Suite 5", "the presidential Suite 8", "$12 a night, Suite 5", "3.5 stars, Suite 5",
        "5 Suite", "12 men in a suite", "40 people who moved into the very last flat 5", "2 units", "12 units 5",
        "Cello Suite 1", "5 stars", "12 flat tyres", "100 words about a suite", "5 rooms, a suite", "apartment 5",
        "3 units sold", "24 hours in a flat", "1990 apartments", "7 suites", "12.5 Elm, Flat 3", "-5 Elm, Flat 3",
    ],
    places.military_address: [
        "APO", "APO 09501", "APO AX 09501", "APO AE 0950", "APO AE", "XPO AE 09501", "FPOAP 96620", "Unit 5 Box 3",
        "USS Nimitz", "APO AE 095011", "LAPO AE 09501", "APO AE09501", "FPO 96620", "APO BB 09501", "DPO",
        "apostrophe AE 09501", "APO AE 9501", "PSC 1234", "Box 5678", "CMR 415", "APO-AE 09501", "AE 09501",
    ],
    places.post_box: [
        "box 12", "PO 12", "P.O. Box", "post 12", "po boxes 12", "p o b 12", "Box PO 12", "xpo box 12", "PO Box A",
        "po box 12345678", "inbox 12", "PO-Box 12", "Post Office 12", "P.O. 12", "po box no. 12", "POBox ",
        "a box 12", "P.O. Box twelve", "PSC 3294", "hippo box 12", "PO Box #A",
    ],
    places.zip_in_context: [
        "zip line 14224", "zip 142", "zip file", "unzip 14224", "zip it 14224", "your zip code?", "14224",
        "zip 1422412", "postcode lottery", "zip code is on file", "zip code lookup", "ZIP archive 12",
        "zip drive 250 MB", "zip: none", "zip 12", "zip1 14224", "zipper 14224", "post code: 1", "postcode SW1A1AA1",
        "zip 14224-", "postal service 14224",
    ],
    places.zip_after_state: [
        "XX 90210", "CA 9021", "CAL 90210", "CA90210", "MCA 90210", "ca 90210", "CA 902101", "CA 90210-12",
        "California 90210", "CA\n\n\n90210", "TX 7870", "TX78701", "in TX, 1990", "OK 12", "ME 123456", "tx 78701",
        "Tex 78701", "TX #78701", "ZZ 12345", "TX: 78701", "IN 5000 cases",
    ],
    places.postcode: [
        "SW1A1AA1", "B2B", "sw1a 1aa", "SW 1A", "1AA SW1", "ABC1 1AA", "M1 1A", "D1A 0B1", "K1A0B1", "K1A BB0",
        "M1 1AEE", "M 1 1AE", "M1  1AE", "SW1A-1AA", "M1 AAE", "MM11 11A", "K1A 0B", "K1A 00B", "I1A 0B1", "K1D1 0B1",
        "k1a 0b1",
    ],
    places.coordinates: [
        "3.5, 4.2", "1.2.3, 4.5.6", "won 3.1415", "0.1234, 0.5678", "91.1234, 10.1234", "48.8584, 192.2945",
        "12.50, 13.50", "20 ° C", "5' 10\"",
        "v1.2345, v2.3456", "1.2345, 2.3456, 3.4567", "48.8584", "$48.8584, 2.2945x", "40 N 70 W", "3.142, 2.718",
        "45° angle", "10' by 12'",
        "48,8584 2,2945", "1.0000/x", "90° N or so", "360°", "12 m 30 s",
    ],
    places.coordinates_in_context: [
        "latitude 48", "long 2.35m", "long: 2.5%", "flat: 48.85", "position 1.5", "lat 4.5", "longer 48.85", "gps 12",
        "location: Oslo", "lats 48.85",
        "long ago 48.85", "geo: none", "coords", "platitude 48.85", "latitude is high", "lng", "position: 3",
        "gps v2.10.3", "long 1,234", "lat.",
        "48.85, 2.35", "late 48.85",
    ],
}  # fmt: skip
