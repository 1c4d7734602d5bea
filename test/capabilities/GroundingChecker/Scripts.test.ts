import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { scriptOf } from "../../../src/capabilities/GroundingChecker/Scripts.ts"
import { WordChecker } from "../../../src/capabilities/GroundingChecker/Words.ts"
import { resultOf } from "../../ResultOf.ts"

/** A passage of each script, a statement that it supports, and the same with another number. */
const samples: ReadonlyArray<readonly [string, passage: string, claim: string]> = [
  ["Latin", "The ticket costs 12 euros. It is valid for one day.", "The ticket costs 12 euros."],
  ["Cyrillic", "Билет стоит 12 рублей. Он действует один день.", "Билет стоит 12 рублей."],
  ["Greek", "Το εισιτήριο κοστίζει 12 ευρώ. Ισχύει για μία ημέρα.", "Το εισιτήριο κοστίζει 12 ευρώ."],
  ["Arabic", "سعر التذكرة 12 دينار. وهي صالحة ليوم واحد.", "سعر التذكرة 12 دينار."],
  ["Hebrew", "הכרטיס עולה 12 שקלים. הוא תקף ליום אחד.", "הכרטיס עולה 12 שקלים."],
  ["Devanagari", "टिकट की कीमत 12 रुपये है। यह एक दिन चलता है।", "टिकट की कीमत 12 रुपये है।"],
  ["Bengali", "টিকিটের দাম 12 টাকা। এটি একদিন চলে।", "টিকিটের দাম 12 টাকা।"],
  ["Tamil", "சீட்டின் விலை 12 ரூபாய். இது ஒரு நாள் செல்லும்.", "சீட்டின் விலை 12 ரூபாய்."],
  ["Telugu", "టికెట్ ధర 12 రూపాయలు. ఇది ఒక రోజు చెల్లుతుంది.", "టికెట్ ధర 12 రూపాయలు."],
  ["Kannada", "ಟಿಕೆಟ್ ಬೆಲೆ 12 ರೂಪಾಯಿ. ಇದು ಒಂದು ದಿನ ಮಾನ್ಯ.", "ಟಿಕೆಟ್ ಬೆಲೆ 12 ರೂಪಾಯಿ."],
  ["Malayalam", "ടിക്കറ്റിന്റെ വില 12 രൂപ. ഇത് ഒരു ദിവസം സാധുവാണ്.", "ടിക്കറ്റിന്റെ വില 12 രൂപ."],
  ["Gujarati", "ટિકિટની કિંમત 12 રૂપિયા છે. તે એક દિવસ ચાલે છે.", "ટિકિટની કિંમત 12 રૂપિયા છે."],
  ["Gurmukhi", "ਟਿਕਟ ਦੀ ਕੀਮਤ 12 ਰੁਪਏ ਹੈ। ਇਹ ਇੱਕ ਦਿਨ ਚੱਲਦੀ ਹੈ।", "ਟਿਕਟ ਦੀ ਕੀਮਤ 12 ਰੁਪਏ ਹੈ।"],
  ["Sinhala", "ප්‍රවේශ පත්‍රය රුපියල් 12 කි. එය දිනකට වලංගු වේ.", "ප්‍රවේශ පත්‍රය රුපියල් 12 කි."],
  ["Georgian", "ბილეთი ღირს 12 ლარი. ის მოქმედებს ერთი დღე.", "ბილეთი ღირს 12 ლარი."],
  ["Armenian", "Տոմսն արժե 12 դրամ: Այն գործում է մեկ օր:", "Տոմսն արժե 12 դրամ:"],
  ["Ethiopic", "ትኬቱ 12 ብር ነው። ለአንድ ቀን ያገለግላል።", "ትኬቱ 12 ብር ነው።"],
  ["Hangul", "표는 12 유로입니다. 하루 동안 유효합니다.", "표는 12 유로입니다."],
  ["Han", "车票价格为 12 欧元。有效期为一天。", "车票价格为 12 欧元。"],
  ["Thai", "ตั๋วราคา 12 บาท ใช้ได้หนึ่งวัน", "ตั๋วราคา 12 บาท"],
  ["Lao", "ປີ້ລາຄາ 12 ກີບ ໃຊ້ໄດ້ໜຶ່ງມື້", "ປີ້ລາຄາ 12 ກີບ"],
  ["Khmer", "សំបុត្រថ្លៃ 12 រៀល ប្រើបានមួយថ្ងៃ", "សំបុត្រថ្លៃ 12 រៀល"],
  ["Myanmar", "လက်မှတ် 12 ကျပ် ဖြစ်သည်။ တစ်ရက် သုံးနိုင်သည်။", "လက်မှတ် 12 ကျပ် ဖြစ်သည်။"],
  ["other", "𒀀𒀁𒀂 12 𒀃𒀄𒀅", "𒀀𒀁𒀂 12"]
]

const supported = (text: string, passage: string) =>
  resultOf(new WordChecker().check({ text, passages: [{ index: 1, title: "", text: passage }] })).supported

describe("The script of a text", () => {
  it.each(samples)("is known of %s", (name, passage) => expect(scriptOf(passage)).toBe(name))

  it("is that of most letters, and is unknown without letters", () => {
    expect(scriptOf("ひらがなとカタカナ")).toBe("Han")
    expect(scriptOf("npm install 使用")).toBe("Latin")
    expect(scriptOf("使用 npm 安装")).toBe("Han")
    for (const text of ["", "12 %", "!?", "👩\u200d💻", "\u0301"]) expect(scriptOf(text)).toBe(undefined)
  })

  const letters = FastCheck.string({ unit: "binary", maxLength: 30 })
  it.prop(
    "is the same whatever stands between the letters, and however often they are repeated",
    { text: letters, filler: FastCheck.stringMatching(/^[ 0-9.,!?]{0,9}$/) },
    ({ filler, text }) => {
      const script = scriptOf(text)
      expect(scriptOf(Array.from(text).join(filler))).toBe(script)
      expect(scriptOf(text.repeat(3))).toBe(script)
      expect(script === undefined).toBe(!/[^\p{Script=Common}\p{Script=Inherited}]/u.test(text))
    }
  )
})

describe("Words of any script", () => {
  it.each(samples)("support what a passage in %s says, and not another number", (_, passage, claim) => {
    expect(supported(claim, passage)).toBe("yes")
    expect(supported(claim.replace("12", "15"), passage)).toBe("no")
  })

  it("are not compared with passages of another script", () => {
    for (const [script, , claim] of samples)
      for (const [other, passage] of samples)
        if (script !== other)
          expect([script, other, supported(claim, passage)]).toEqual([script, other, null])
  })

  it("are compared by pairs of characters where there are no spaces, whose digits begin no name", () => {
    expect(supported("ហាងបើក24ម៉ោង", "ហាងបើក 24 ម៉ោងរាល់ថ្ងៃ។")).toBe("yes")
    expect(supported("ຮ້ານເປີດ24ຊົ່ວໂມງ", "ຮ້ານເປີດ 24 ຊົ່ວໂມງທຸກມື້")).toBe("yes")
  })

  it("are not needed by a number, which is the same in every script", () => {
    expect(samples.map(([, passage]) => supported("12", passage))).toEqual(samples.map(() => "yes"))
    expect(samples.map(([, passage]) => supported("15", passage))).toEqual(samples.map(() => "no"))
    expect(supported("1.", "The ticket costs 12 euros.")).toBe(null)
  })
})
