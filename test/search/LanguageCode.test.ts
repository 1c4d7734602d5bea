import { expect, it } from "vitest"
import { languageCode } from "../../src/search/LanguageCode.ts"

it.each([
  ["Where can I download my invoice?", "en"],
  ["Wo finde ich meine Rechnung?", "de"],
  ["Où est ma facture ?", "fr"],
  ["¿Dónde está mi factura?", "es"],
  ["Dove posso trovare la mia fattura?", "it"],
  ["Onde posso ver a minha fatura?", "pt"],
  ["Waar kan ik mijn factuur vinden?", "nl"],
  ["Gdzie jest moja faktura?", "pl"],
  ["Hur kan jag se min faktura?", "sv"],
  ["Faturamı nasıl görebilirim, bu mümkün mü?", "tr"],
  ["請求書はどこですか", "ja"],
  ["发票在哪里", "zh"],
  ["Где мой счёт?", "ru"],
  ["Объясните, где мой счёт", "ru"],
  ["Де мій рахунок?", "uk"],
  ["Дзе мой рахунак? Пакажыце яго ўвесь", "be"],
  ["Къде е моята фактура?", "bg"],
  ["Где се налази мој рачун?", "sr"],
  ["Менің шотым қайда?", "kk"],
  ["أين فاتورتي؟", "ar"],
  ["صورتحساب من کجاست؟", "fa"],
  ["میرا بل کہاں ہے؟", "ur"],
  ["मेरा बिल कहाँ है?", "hi"],
  ["invoice 4711", null],
  ["", null],
  ["🙂", null]
])("%s is %s", (text, language) => {
  expect(languageCode(text)).toBe(language)
})

it("A long text costs no more than its beginning", () => {
  expect(languageCode("the invoice is mine ".repeat(100_000))).toBe("en")
})
