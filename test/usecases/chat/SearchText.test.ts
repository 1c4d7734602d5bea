import { describe, expect, it } from "vitest"
import { searchText } from "../../../src/usecases/chat/SearchText.ts"

const history = [
  { role: "user", content: "How long is the warranty of the blue bicycle?" },
  { role: "assistant", content: "Two years [1]." }
] as const

describe("A follow-up question", () => {
  it.each(["And the red one?", "How long is it?", "Why?", "What does that cost in winter?"])(
    "that depends on the question before is searched together with it: %s",
    (message) => {
      expect(searchText(message, history)).toBe(`${message}\n${history[0].content}`)
    }
  )

  it.each([
    "Which payment methods does the online shop accept on weekends?",
    "How do I change the delivery address of an order?"
  ])("that stands by itself is searched as it is: %s", (message) => {
    expect(searchText(message, history)).toBe(message)
  })

  it.each([
    ["German", "Und wie lange dauert das?", "Welche Zahlungsarten gibt es bei Bestellungen aus Österreich?"],
    ["German, with a pronoun", "Welche Kosten entstehen dafür im nächsten Monat noch?", undefined],
    [
      "French",
      "Et combien de temps cela prend-il ?",
      "Comment modifier adresse livraison facture commande payée ?"
    ],
    [
      "Spanish",
      "¿Y cuánto tarda eso?",
      "¿Cómo cambio la dirección de entrega del pedido pagado con tarjeta?"
    ],
    ["Portuguese", "E quanto custa isso?", "Como altero o endereço de entrega do pedido pago com cartão?"],
    ["Italian", "E quanto ci vuole?", "Come cambio indirizzo di consegna dell'ordine pagato con carta?"],
    [
      "Dutch",
      "En hoe lang duurt dat?",
      "Welke betaalmethoden accepteert de webwinkel voor zakelijke klanten?"
    ],
    ["Polish", "A ile to trwa?", "Jak zmienić adres dostawy opłaconego zamówienia online?"],
    [
      "Turkish",
      "Peki bu ne kadar sürer?",
      "Ödenmiş siparişin teslimat adresini panelden nasıl değiştiririm?"
    ],
    ["Russian", "А сколько это займёт?", "Как изменить адрес доставки оплаченного заказа через приложение?"],
    ["Arabic", "وكم يستغرق ذلك؟", "كيف أغير عنوان تسليم الطلب المدفوع ببطاقة الائتمان؟"],
    ["Hebrew", "וכמה זמן זה לוקח?", "איך משנים כתובת משלוח להזמנה ששולמה בכרטיס אשראי?"],
    ["Chinese", "那需要多长时间？", "怎样修改已经付款订单的收货地址和发票抬头？"],
    ["Japanese", "それはどのくらいかかりますか？", "支払い済み注文の配送先住所と請求書宛名を変更する方法"]
  ])("is detected in %s too, and a complete question is searched alone", (_, leaning, standing) => {
    expect(searchText(leaning, history)).toBe(`${leaning}\n${history[0].content}`)
    if (standing !== undefined) expect(searchText(standing, history)).toBe(standing)
  })

  it("without a question before it is searched unchanged", () => {
    expect(searchText("Why?", [])).toBe("Why?")
  })
})
