import { describe, expect, it } from "@effect/vitest"
import * as FastCheck from "effect/FastCheck"
import { queryWords } from "../../src/search/Query.ts"
import { similarity } from "../../src/search/QuestionSimilarity.ts"
import { eachTerm, maxFrequency, pieces, terms, toTsvector } from "../../src/search/Tokenizer.ts"
import { cpuMillis } from "../CpuTime.ts"

const parsed = (tsv: string) => {
  const found: Array<readonly [string, number]> = []
  eachTerm(tsv, (term, frequency) => found.push([term, frequency]))
  return found
}

describe("Tokenizer", () => {
  it("leaves out English stop words and endings", () => {
    expect(terms("How are the connections of a Relational database configured?")).toEqual([
      "connect",
      "relat",
      "databas",
      "configur"
    ])
  })

  it("finds full-width, ligature and capital letters under their plain form", () => {
    expect(terms("ＡＢＣ oﬃce ΣΊΣΥΦΟΣ №5")).toEqual(terms("abc office σίσυφος no5"))
  })

  it("leaves words of other alphabets as they are", () => {
    expect(terms("Привет, Мир! שלום 2024")).toEqual(["привет", "мир", "שלום", "2024"])
  })

  it.prop(
    "finds the same terms in plain text whatever stands beside it",
    { text: FastCheck.stringMatching(/^[\x20-\x7e\n]{0,300}$/) },
    ({ text }) => {
      expect(terms(`${text} слово`)).toEqual([...terms(text), "слово"])
      expect(terms(text)).toEqual(terms(text))
    }
  )

  it.each([
    ["Chinese", "数据库连接", ["数据", "据库", "库连", "连接"]],
    ["Japanese", "猫はカレー", ["猫は", "はカ", "カレ", "レー"]],
    ["Korean", "서울 날씨가", ["서울", "날씨", "씨가"]],
    ["Thai", "ที่นี่", ["ที่นี่"]]
  ])("finds %s text by pairs of characters", (_, text, expected) => {
    expect(terms(text)).toEqual(expected.map((term) => term.normalize("NFKC")))
  })

  it("keeps a single unspaced character, and splits where scripts meet", () => {
    expect(terms("猫 iPhone手机15 x犬")).toEqual(["猫", "iphon", "手机", "15", "x", "犬"])
  })

  it("does not take punctuation of unspaced scripts for words", () => {
    expect(terms("「猫」。、・〜！？")).toEqual(["猫"])
  })

  it("bounds what one term and one chunk may hold", () => {
    const { length, tsv } = toTsvector(terms("𠀀".repeat(30_000) + " " + "x".repeat(100_000)))
    expect(length).toBe(maxFrequency)
    expect(parsed(tsv)).toEqual([["𠀀𠀀", maxFrequency]])
    expect(terms("x".repeat(100_000)).map((term) => term.length)).toEqual([128])
    expect(terms("a" + "\u0301".repeat(1_000)).every((term) => term.length <= 128)).toBe(true)
  })

  it("writes quotes and backslashes so that they are read back", () => {
    const { tsv } = toTsvector(["it's", "back\\slash", "'", "\\", "it's"])
    expect(tsv).toBe(`'it''s':1,5 'back\\\\slash':2 '''':3 '\\\\':4`)
    expect(parsed(tsv)).toEqual([
      ["it's", 2],
      ["back\\slash", 1],
      ["'", 1],
      ["\\", 1]
    ])
  })

  it("reads back every term and frequency it writes", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.array(FastCheck.string({ minLength: 1, unit: "grapheme" })), (words) => {
        const counts = new Map<string, number>()
        for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1)
        expect(parsed(toTsvector(words).tsv)).toEqual(Array.from(counts))
      })
    )
  })

  it("finds the same terms in every normal form of a text, none of them empty", () => {
    FastCheck.assert(
      FastCheck.property(FastCheck.string({ unit: "grapheme" }), (text) => {
        const found = [
          ...terms(text),
          ...pieces(text, { english: true }),
          ...pieces(text, { english: false })
        ]
        expect(found).not.toContain("")
        expect(found.every((term) => term.isWellFormed() || !text.isWellFormed())).toBe(true)
        expect(terms(text.toLowerCase().normalize("NFC"))).toEqual(terms(text.toLowerCase()))
      })
    )
  })

  it("takes marks without a letter for no word, and the word after them as it is", () => {
    for (const text of ["\u26a0\ufe0fWarning", "\u26a0\ufe0f Warning", "Warning \u26a0\ufe0f"]) {
      expect(terms(text)).toEqual(["warn"])
      expect(pieces(text, { english: true })).toEqual(["warn"])
      expect(pieces(text, { english: false })).not.toContain("")
    }
  })

  const other = (text: string) => pieces(text, { english: false })

  it.each([
    ["Hindi", ["कला", "कल", "काल", "कुल", "किला", "कील"]],
    ["Bengali", ["কাল", "কল", "কুল", "কলা"]],
    ["Tamil", ["கல்", "கால்", "கொல்", "கலை"]],
    ["Telugu", ["పాలు", "పలు", "పూల", "పిల్ల"]],
    ["Kannada", ["ಹಾಲು", "ಹುಲಿ", "ಹಲ್ಲು", "ಹಾಲ"]],
    ["Malayalam", ["കാല", "കല", "കില", "കോല"]],
    ["Gujarati", ["કાલ", "કલા", "કુલ", "કીલ"]],
    ["Punjabi", ["ਕਾਲ", "ਕਲਾ", "ਕੁਲ", "ਕਿਲ"]],
    ["Sinhala", ["දිව", "දව", "දෙව", "දාව"]],
    ["Dhivehi", ["ދިވެ", "ދުވާ", "ދެވި"]],
    ["Thai", ["ที", "ที่", "ท", "ทำ"]],
    ["Lao", ["ກິນ", "ກນ", "ກັນ"]],
    ["Khmer", ["កា", "កិ", "កូ", "ក"]],
    ["Burmese", ["စာ", "စီ", "စု", "စ"]]
  ])("tells short words of %s apart that differ in vowel signs alone", (_, words) => {
    expect(new Set(words.map((text) => other(text).join(" "))).size).toBe(words.length)
    expect(new Set(words.map((text) => terms(text).join(" "))).size).toBe(words.length)
  })

  it("finds inflected forms of words with vowel signs", () => {
    expect(other("किताबें")).toEqual(expect.arrayContaining(["किता"]))
    expect(other("किताब")).toEqual(expect.arrayContaining(["किता"]))
  })

  it.each([
    ["Latin", "élévation", "elevation"],
    ["Greek", "ανάλυση", "αναλυση"],
    ["Cyrillic", "кни́га", "книга"],
    ["Arabic", "مُحَمَّد", "محمد"],
    ["Hebrew", "שָׁלוֹם", "שלום"]
  ])("finds words in %s script with and without accents or points", (_, written, plain) => {
    expect(other(written)).toEqual(other(plain))
  })

  it.each([
    ["Sinhala", "ක්\u200dරියාව", "ක්රියාව"],
    ["Hindi", "शक्\u200dति", "शक्ति"],
    ["Marathi", "दर्\u200dया", "दर्या"],
    ["Bengali", "উদ্\u200cঘাটন", "উদ্ঘাটন"],
    ["Malayalam", "നന്\u200dമ", "നന്മ"],
    ["Persian", "می\u200cخواهم", "میخواهم"],
    ["Urdu", "کتاب\u200cخانہ", "کتابخانہ"],
    ["German", "Daten\u00adschutz", "Datenschutz"],
    ["English", "configu\u00adration", "configuration"]
  ])("finds words of %s with and without joiners and soft hyphens", (_, written, plain) => {
    expect(other(written)).toEqual(other(plain))
    expect(pieces(written, { english: true })).toEqual(pieces(plain, { english: true }))
    expect(terms(written)).toEqual(terms(plain))
    expect(queryWords(written)).toEqual(queryWords(plain))
    expect(similarity(written, plain)).toBe(1)
  })

  it.prop(
    "finds the same terms wherever joiners stand in a text",
    {
      parts: FastCheck.array(
        FastCheck.constantFrom("क्", "ष", "می", "خ", "a", "I", "ඟ", "é", " ", "猫", "é", "9"),
        {
          maxLength: 20
        }
      ),
      joiners: FastCheck.array(FastCheck.constantFrom("", "\u200c", "\u200d", "\u00ad"), {
        minLength: 20,
        maxLength: 20
      })
    },
    ({ joiners, parts }) => {
      const written = parts.map((part, place) => part + joiners[place]).join("")
      for (const english of [true, false])
        expect(pieces(written, { english })).toEqual(pieces(parts.join(""), { english }))
      expect(terms(written)).toEqual(terms(parts.join("")))
    }
  )

  it("finds Turkish words in either case, with and without a dot", () => {
    for (const [written, plain] of [
      ["ILIK", "ılık"],
      ["SIKI", "sıkı"],
      ["İZİN", "izin"],
      ["IŞIK", "ışık"],
      ["İSTANBUL", "istanbul"],
      ["ISPARTA", "ısparta"],
      ["NASIL", "nasıl"],
      ["kapi", "kapı"]
    ] as const) {
      expect(other(written)).toEqual(other(plain))
      expect(terms(written)).toEqual(terms(plain))
    }
    expect(other("nasıl")).toEqual([])
  })

  it.each([
    ["hashes", "#"],
    ["backticks", "`"],
    ["words", "a "],
    ["one word", "a"],
    ["one unspaced run", "漢"],
    ["stacked marks", "\u0301\u0316"],
    ["mixed scripts", "a漢"]
  ])("takes time in proportion to a megabyte of %s", (_, unit) => {
    const started = cpuMillis()
    terms(unit.repeat(1_000_000 / unit.length))
    expect(cpuMillis() - started).toBeLessThan(5_000)
  })
})
