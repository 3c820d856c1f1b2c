"""Which language: English sentences, also short ones, are known as English, and those of others are not."""

from __future__ import annotations

import pytest

from benchmarks import language
from condviz.data.scene_tables import load_tables
from condviz.data.scenes import load_families
from condviz.data.texts import looks_english, not_english
from tests.fresh import modules_after

ENGLISH = """
Seven tired nurses drank coffee in Hamburg.
Dogs chase cats.
Two men play chess.
Three boys kicked red balls.
Nobody liked cold soup.
Prices rose sharply last week.
Old sailors tell tall stories.
Heavy rain flooded several streets.
Seven nurses drank strong black coffee.
Children love building sandcastles.
Paris welcomes twelve million tourists yearly.
Engineers repaired two broken bridges.
Fresh bread smells wonderful.
Twelve monks sang quietly.
Grandmother knits warm woollen socks.
Ten runners finished before noon.
Police arrested four suspects yesterday.
Tom bought six green apples.
Anna plays violin every Sunday.
Rabbits eat carrots all day.
Great food, terrible service, never again.
Wonderful pizza, friendly waiters, fair prices.
Bees make honey.
Farmers harvest wheat every August.
Scientists discover new planet.
Stocks fall sharply after surprise vote.
Firefighters rescue kitten stuck high up tree.
Local bakery wins national award.
Young doctors work long nights.
Five penguins waddled past.
Angry customers demanded refunds.
Snow covered everything overnight.
Students protested against higher fees.
Two teenagers repaired old bicycles.
Berlin trains arrive late again.
Black cats bring bad luck, people say.
She quickly sold three expensive paintings.
Mary teaches German twice weekly.
Lovely hotel, comfy beds, noisy neighbours.
No refunds without receipt, sorry.
Surfers ride huge waves near Nazaré.
Müller scores twice, Bayern win again.
Ten thousand fans cheered loudly.
Nurses strike.
Wolves howl, owls hoot, campers shiver.
Carpenter builds oak table.
Grandpa caught three enormous trout.
Chefs cook, waiters serve, guests eat.
"""
OTHERS = """
Sieben müde Krankenschwestern tranken Kaffee in Hamburg.
Ein Mann surft im Morgengrauen auf einer Welle.
Die Katze schläft auf dem Sofa.
Zwei alte Frauen spielen Tischtennis im Hof.
Der Zug nach Berlin war schon wieder zu spät.
Wir haben gestern einen neuen Drucker gekauft.
Drei Kinder bauen eine Burg aus Sand.
Das Essen war kalt und der Kellner unfreundlich.
Hunde jagen gern Katzen.
Im Winter fahren viele Leute Ski.
Mein Bruder arbeitet als Arzt in Wien.
Gestern hat es den ganzen Tag geregnet.
Polizei nimmt vier Verdächtige fest.
Bauern ernten Weizen im August.
Am Abend singt der Chor in der Kirche.
Toller Service, leckeres Essen, faire Preise.
Un homme fait du surf sur une vague.
Deux femmes jouent au tennis sous la pluie.
Le chat dort sur le canapé.
Trois enfants construisent un château de sable.
Le train pour Paris est encore en retard.
Mon frère travaille comme médecin à Lyon.
Hier il a plu toute la journée.
Les étudiants manifestent contre la hausse des prix.
On a mangé une excellente pizza.
La police arrête quatre suspects.
Service rapide, cuisine excellente, prix corrects.
Ma grand-mère tricote des chaussettes.
Le soir, la chorale chante dans la nef.
Sept infirmières fatiguées boivent du café.
Une actrice célèbre visite notre village.
Una mujer esquía por la noche.
Dos hombres juegan al ajedrez en el parque.
El gato duerme en el sofá.
Tres niños construyen un castillo de arena.
El tren a Madrid llega tarde otra vez.
Mi hermano trabaja como médico en Sevilla.
Ayer llovió todo el día.
La comida estaba fría y el camarero era antipático.
Me gusta comer pan con aceite.
Siete enfermeras cansadas tomaron café en Hamburgo.
Los estudiantes protestan contra los precios.
No hay nadie en casa hoy.
La policía detiene a cuatro sospechosos.
Perros grandes persiguen gatos.
He comido una manzana roja.
Excelente hotel, camas muy comodas.
Due donne giocano a tennis sotto la pioggia.
Il gatto dorme sul divano.
De kat slaapt op de bank.
Twee mannen spelen schaak in het park.
Dois homens jogam xadrez no parque.
O gato dorme no sofá.
Två kvinnor spelar tennis i regnet.
Kaksi naista pelaa tennistä sateessa.
Dwie kobiety grają w tenisa.
男の人が波に乗る。
Кот спит на диване.
"""


@pytest.mark.parametrize(
    ("sentences", "said"),
    [
        (("A man surfs.", "A woman skis in the morning."), ""),
        (("Ein Mann surft im Morgengrauen auf einer Welle.",), "The sentence"),
        (("A man surfs at dawn.", "Una mujer esquía por la noche."), "Sentence 2"),
        (("Un homme fait du surf sur une vague.", "男の人が波に乗る。"), "The sentences"),
        (("Surfing!", ""), ""),  # too few words to tell
    ],
)
def test_other_languages_are_recognised(sentences: tuple[str, ...], said: str) -> None:
    assert not_english(*sentences) == said


@pytest.mark.parametrize(("texts", "english"), [(ENGLISH, True), (OTHERS, False)])
def test_short_sentences_with_few_function_words(texts: str, english: bool) -> None:
    assert [text for text in texts.strip().splitlines() if looks_english(text) is not english] == []


def test_no_false_alarm_among_the_sentences_that_ship() -> None:
    texts = {scene.text for family in load_families() for scene in family.scenes}
    texts |= {text for table in load_tables() for text in table.sentences}
    assert [text for text in sorted(texts)[::20] if not looks_english(text)] == []


def test_terms_of_a_field_are_english_and_five_languages_are_found() -> None:
    assert language.false_alarms() <= 0.01
    assert min(language.found().values()) >= 0.9


def test_no_scene_is_read_to_know_english() -> None:
    code = "from condviz.data.texts import looks_english; looks_english('The enzyme cleaves long peptide bonds.')"
    assert not modules_after(code) & {"condviz.data.scenes", "torch"}
