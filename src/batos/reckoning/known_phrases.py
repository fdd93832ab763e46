"""The words by which questions of nine languages ask for a computation, and the signs that cells of any table have.

A question is computed only if every word of it is known here or stands in the table, so a word that is missing costs
an answer and never makes a wrong one.
"""

from __future__ import annotations

from typing import Final

from batos.reckoning.eastern import EASTERN
from batos.reckoning.germanic import GERMANIC
from batos.reckoning.romance import ROMANCE

#: Phrases without accents, between bars, by language and by what they mean: an operation (`count`, `sum`, `avg`, `max`,
#: `min`, the last two also of a concept), a comparison (`gt`, `ge`, `lt`, `le`, `between`), a piece of a date,
#: nothing that changes the result (`stop`), or nothing where days are counted alone (`calendar`).
PHRASES: Final = GERMANIC | ROMANCE | EASTERN

#: Names of columns that mean the same, so that a question in another language, or about another word, finds them.
CONCEPTS: Final[dict[str, str]] = {
    "price": "price cost costs preis kosten prix cout precio coste costo prezzo prijs preco custo"
    " 价格 价钱 单价 費用 费用 値段 価格 料金 単価 fee rate einzelpreis",
    "amount": "amount betrag montant importe importo bedrag quantia valor 金额 金額 spending expense ausgaben",
    "revenue": "revenue umsatz turnover omzet ingresos ricavi fatturato chiffre receita faturamento"
    " einnahmen income 收入 销售额 売上 売上高",
    "quantity": "units unit quantity qty pieces pcs menge anzahl stuck stuckzahl quantite unites"
    " pieces cantidad unidades piezas quantita unita pezzi aantal stuks hoeveelheid"
    " quantidade unidades pecas 数量 件数 个数 台数 個数 销量 count sold 販売数 台 件 个"
    " 個 本 冊",
    "stock": "stock bestand vorrat lagerbestand existencias scorta giacenza voorraad estoque 库存 在庫",
    "weight": "weight gewicht poids peso 重量 体重 重さ",
    "temperature": "temperature temp temperatur temperatura temperatuur 温度 気温 气温",
    "duration": "duration dauer duree duracion durata duur duracao 时长",
    "grade": "grade mark rating note nota voto cijfer beoordeling bewertung 成绩 評価",
    "date": "date datum fecha data 日期 日付",
    "month": "month monat mois mes mese maand 月份",
    "age": "age alter edad eta leeftijd idade 年龄 年齢",
    "product": "product produkt produit producto prodotto produto artikel article item 产品 商品",
    "name": "name nom nombre nome naam 姓名 名前 名称",
    "city": "city town stadt ville ciudad citta stad cidade 城市 都市",
    "customer": "customer client kunde kundin cliente klant 客户 顧客",
    "branch": "branch filiale succursale sucursal filial vestiging 分店 支店",
}

#: Names of columns whose numbers name something and measure nothing.
KEYS: Final = (
    "id no nr number nummer numero num code zip plz phone tel telefon position pos # year jahr an"
    " annee ano anno jaar room raum salle sala aula kamer index rank rang 编号 年 番号 号码 房间"
)
#: The concept of a column by its unit.
MEASURES: Final = {
    unit: concept
    for concept, units in {
        "temperature": "°c °f ℃",
        "weight": "kg g mg t lb",
        "duration": "h min s std day days hour hours minutes tage stunden minuten jours heures dias"
        " horas giorni ore dagen uren 天数 日数 時間",
    }.items()
    for unit in units.split()
}

#: Words with which a row begins that adds up or averages the rows above it.
TOTALS: Final = (
    "total totals sum subtotal grand summe gesamt insgesamt zwischensumme gesamtbetrag gesamtsumme"
    " somme suma totale somma totaal subtotaal soma subtotale 合计 总计 小计 合計 小計 総計 average"
    " mean durchschnitt mittelwert moyenne media promedio gemiddelde 平均 共计"
)
MISSING: Final = (
    "- – — − ? n/a na n.a. null none nan unknown missing k.a. ka unbekannt fehlt inconnu s/d n/d nd"
    " onbekend desconhecido desconocido 无 未知 不明 なし … .. ... ／ / x.x #n/a"
)
YES: Final = "yes y true ja oui si sì sim wahr vrai 是 有 はい x ✓ ✔ 1"
NO: Final = "no n false nein non nee nao não falsch faux 否 无 無 いいえ 0 - –"
CURRENCIES: Final = (
    "€ $ £ ¥ ₹ eur euro euros usd dollar dollars gbp pound pounds chf franken francs jpy yen cny rmb"
    " 元 円 日元 人民币 kr"
)
#: Words with which a question begins that wants yes or no.
YES_OR_NO: Final = (
    "is are was were did does do has have had will would should ist sind war waren hat haben wurde"
    " wurden gibt est sont etait es son fue fueron hay e sono era zijn heeft werd foi sao ha"
)
#: Words of a heading or a file name by which a table is one of sales.
SALES: Final = (
    "sale sales verkauf verkaufe verkaufszahlen vente ventes venta ventas vendita vendite verkoop vendas venda"
)
