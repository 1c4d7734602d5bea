import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import * as FastCheck from "effect/FastCheck"
import { formatCases, parse, parseSteps } from "../../src/domain/agents/TestCaseFile.ts"
import * as Csv from "../../src/domain/agents/Csv.ts"

const casesOf = (text: string, format: "csv" | "jsonl") => Either.getOrThrow(parse(text, format))
const problemOf = (text: string, format: "csv" | "jsonl" = "jsonl") =>
  Either.getOrThrow(Either.flip(parse(text, format)))

describe("A file of cases", () => {
  it("is JSON Lines: a question, and what is expected where something is", () => {
    const text =
      '\uFEFF{"question": " How? ", "expectSources": ["Docs", "guide.md"], "expectFacts": ["npm start"]}\r\n' +
      '\n{"question": "Who?", "expectRefusal": true}\n'
    expect(casesOf(text, "jsonl")).toEqual([
      { line: 1, question: "How?", expectSources: ["Docs", "guide.md"], expectFacts: ["npm start"] },
      { line: 3, question: "Who?", expectSources: [], expectFacts: [], expectRefusal: true }
    ])
  })

  it("or CSV with the same columns in any order, lists separated by |", () => {
    const text =
      'expectFacts,question,expectRefusal,expectSources\r\n"one | two, three","He asked ""how""\nand why?",false,Docs\r\n' +
      "\r\n,Who?,yes,\r\n"
    expect(casesOf(text, "csv")).toEqual([
      {
        line: 2,
        question: 'He asked "how"\nand why?',
        expectSources: ["Docs"],
        expectFacts: ["one", "two, three"],
        expectRefusal: false
      },
      { line: 5, question: "Who?", expectSources: [], expectFacts: [], expectRefusal: true }
    ])
  })

  it("or CSV as spreadsheets write it: with semicolons or tabs, as in its first line", () => {
    const expected = [
      { line: 2, question: "What, and why?", expectSources: ["Docs; more"], expectFacts: [] },
      { line: 3, question: "Who?", expectSources: [], expectFacts: [], expectRefusal: true }
    ]
    for (const separator of [";", "\t"]) {
      const rows = [
        ["question", "expectSources", "expectRefusal"],
        ["What, and why?", '"Docs; more"', ""],
        ["Who?", "", "true"]
      ]
      expect(casesOf(rows.map((row) => row.join(separator)).join("\r\n"), "csv")).toEqual(expected)
    }
    expect(casesOf("question\nWhat; and why?", "csv")).toMatchObject([{ question: "What; and why?" }])
  })

  it("may expect that sources support the reply, in both formats; null is a missing field", () => {
    const expected = [
      { line: 2, question: "a", expectSources: [], expectFacts: [], expectGrounding: true },
      { line: 3, question: "b", expectSources: [], expectFacts: [], expectGrounding: false },
      { line: 4, question: "c", expectSources: [], expectFacts: [] }
    ]
    const csv = "question,expectGrounding\na,yes\nb,false\nc,\n"
    const lines = [
      { question: "a", expectGrounding: true },
      { question: "b", expectGrounding: false },
      { question: "c", expectGrounding: null, expectSources: null, expectFacts: null }
    ]
    expect(casesOf(csv, "csv")).toEqual(expected)
    const jsonl = lines.map((line) => `\n${JSON.stringify(line)}`).join("")
    expect(casesOf(jsonl, "jsonl")).toEqual(expected)
  })

  it("may have the schema of the reply, as an object or in CSV as its JSON", () => {
    const schema = {
      type: "object",
      properties: { reason: { type: "string" }, a: { type: "integer" } },
      required: ["a"]
    }
    const csv = `question,responseSchema\na,"${JSON.stringify(schema).replaceAll('"', '""')}"\nb,\n`
    const [first, second] = casesOf(csv, "csv")
    expect(first).toEqual({
      line: 2,
      question: "a",
      expectSources: [],
      expectFacts: [],
      responseSchema: schema
    })
    expect(second).not.toHaveProperty("responseSchema")
    const line = JSON.stringify({ question: "a", responseSchema: schema })
    const nothing = JSON.stringify({ question: "b", responseSchema: null })
    expect(casesOf(`${line}\n${nothing}`, "jsonl")).toEqual([
      { ...first, line: 1 },
      { ...second, line: 2 }
    ])
    // The order of the members is that in which a model writes them.
    expect(formatCases(casesOf(line, "jsonl"))).toContain(JSON.stringify(schema))
  })

  it.each([
    ["jsonl", '{"question": "a"}\n{"question": }', "line 2: it is not valid JSON", '"expectFacts"'],
    ["jsonl", `{"question": ${"[".repeat(9_999)}${"]".repeat(9_999)}}`, "line 1: it is nested", '"question"'],
    ["jsonl", '["question"]', "line 1: it is no object", '"question"'],
    ["jsonl", "null", "line 1: it is no object", '"question"'],
    ["jsonl", '{"questoin": "a"}', "line 1: ", '"question"'],
    ["jsonl", '{"question": "a", "expectSource": ["b"]}', "line 1: expectSource: ", '"expectSources"'],
    ["jsonl", '\n{"question": "  "}', "line 2: question: ", '"question"'],
    ["jsonl", '{"question": "a", "expectFacts": "b"}', "line 1: expectFacts: ", '["…"]'],
    ["jsonl", '{"question": "a", "expectRefusal": "no"}', "line 1: expectRefusal: ", "false"],
    ["jsonl", '{"question": "a", "expectRefusal": true, "expectSources": ["b"]}', "line 1: ", "exclude"],
    ["jsonl", '{"question": "a", "expectRefusal": true, "expectGrounding": true}', "line 1: ", "exclude"],
    [
      "jsonl",
      '{"question": "a", "responseSchema": {"type": "array"}}',
      "line 1: responseSchema.type: ",
      "object"
    ],
    [
      "jsonl",
      '{"question": "a", "responseSchema": {"type": "object", "not": {}}}',
      "line 1: responseSchema.not: ",
      "not supported"
    ],
    ["jsonl", "[1]\n", "line 1: ", '"question"'],
    ["jsonl", " \n", "no case found", '"question"'],
    ["jsonl", '{"input": [], "ideal": "a"}', "line 1: input: ", "one message of the user"],
    [
      "jsonl",
      '{"input": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}',
      "line 1: input: ",
      "none of an assistant"
    ],
    ["jsonl", '{"input": {"a": 1}, "ideal": "b"}', "line 1: a sample is ", '"ideal"'],
    ["jsonl", '{"input": " ", "ideal": "b"}', "line 1: question: ", '"question"'],
    ["csv", "", "no case found", "columns"],
    ["csv", "question\n", "no case found", "columns"],
    ["csv", "Frage\na", "line 1: unknown column Frage", "question"],
    ["csv", "question,__proto__\na,b", "line 1: unknown column __proto__", "question"],
    ["csv", "question,__defineGetter__\na,b", "line 1: unknown column __defineGetter__", "question"],
    ["csv", "question,note,note\na,b,c", "line 1: the column note is there twice", "question"],
    ["csv", "expectFacts\na", "line 1: the column question is missing", "question"],
    ["csv", "question\na\nb,c", "line 3: 2 fields for 1 columns", "quotes"],
    ["csv", 'question\n"a\nb', "line 2: a quote is not closed", "columns"],
    ["csv", "question,expectRefusal\na,maybe", "line 2: expectRefusal: ", "true or false"],
    ["csv", "question,expectGrounding\na,maybe", "line 2: expectGrounding: ", "true or false"],
    ["csv", "question,responseSchema\na,{type", "line 2: responseSchema: ", "JSON object"],
    ["csv", "question,responseSchema\na,[]", "line 2: responseSchema: ", "JSON object"],
    ["csv", "question,expectFacts\n,b", "line 2: question: ", "columns"]
  ] as const)("of %s that reads %j is refused: %s … %s", (format, text, ...words) => {
    for (const word of words) expect(problemOf(text, format)).toContain(word)
  })

  it("may have samples of OpenAI Evals: the ideal answer is a fact, and of several a judge decides", () => {
    const lines = [
      {
        input: [
          { role: "system", content: "Answer." },
          { role: "user", content: " How many? " }
        ],
        ideal: "11"
      },
      { input: "Which one?", ideal: ["the red", 'the "blue"'], id: "s1" },
      { input: [{ role: "user", content: "Why?" }] }
    ]
    expect(casesOf(lines.map((line) => JSON.stringify(line)).join("\n"), "jsonl")).toEqual([
      { line: 1, question: "How many?", expectSources: [], expectFacts: ["11"] },
      {
        line: 2,
        question: "Which one?",
        expectSources: [],
        expectFacts: [],
        criterion: 'The reply states one of these: "the red", "the \\"blue\\""'
      },
      { line: 3, question: "Why?", expectSources: [], expectFacts: [] }
    ])
  })

  it("is read up to the first problem, and not behind the maximum", () => {
    const stepsOf = (text: string, format: "csv" | "jsonl") => {
      const steps = parseSteps(text, format)
      for (let count = 0; ; count++) if (steps.next().done === true) return count
    }
    expect(stepsOf(`{}\n${'{"question": "How?"}\n'.repeat(100)}`, "jsonl")).toBe(0)
    expect(stepsOf(`question\n${"a\n".repeat(50_000)}`, "csv")).toBe(10_000)
    expect(problemOf(`question\n${"a\n".repeat(50_000)}`, "csv")).toBe("has more than 10000 cases")
  })

  it("says what is wrong in few words, however long the value is", () => {
    const long = JSON.stringify({ question: "a".repeat(100_000), expectFacts: "b".repeat(100_000) })
    expect(problemOf(long).length).toBeLessThan(600)
  })

  const word = FastCheck.string({ unit: "grapheme", minLength: 1 }).filter((text) => text.trim() === text)
  const words = FastCheck.array(word, { maxLength: 3 })

  it.prop(
    "that is written is read as the same cases",
    [
      FastCheck.array(
        FastCheck.record(
          {
            question: word,
            expectSources: words,
            expectFacts: words,
            expectGrounding: FastCheck.boolean(),
            note: word
          },
          { requiredKeys: ["question", "expectSources", "expectFacts"] }
        ),
        { minLength: 1, maxLength: 5 }
      )
    ],
    ([cases]) => {
      expect(casesOf(formatCases(cases), "jsonl")).toEqual(
        cases.map((fields, place) => ({ ...fields, line: place + 1 }))
      )
    }
  )

  const field = FastCheck.string({ unit: FastCheck.constantFrom(",", '"', "\n", "\r\n", " ", "|", "a", "é") })

  it.prop(
    "CSV is read back as it was written, with the line that each record begins at",
    [FastCheck.array(FastCheck.array(field, { minLength: 2, maxLength: 4 }), { maxLength: 8 })],
    ([rows]) => {
      const written = rows.map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join(","))
      const text = written.join("\n")
      const found = [...Csv.records(text)]
      expect(found.map(({ fields }) => fields)).toEqual(rows)
      let line = 1
      for (const [place, record] of found.entries()) {
        expect(record.line).toBe(line)
        line += (written[place] ?? "").split(/\r\n|\r|\n/).length
      }
    }
  )

  it.prop(
    "CSV of any text is read or refused, and nothing but quotes and separators is lost",
    [field],
    ([text]) => {
      const visible = (all: string) => all.replace(/[\s",;]/g, "")
      const fields = [...Csv.records(text)].flatMap((record) => record.fields ?? [])
      const whole = [...Csv.records(text)].every((record) => record.fields !== null)
      if (whole) expect(visible(fields.join(""))).toBe(visible(text))
    }
  )
})
