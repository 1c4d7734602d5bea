/** Output of a model's provider, and definitions of tools. */
import { ChunkId, DocumentId, SourceId } from "../../src/domain/Ids.ts"
import { resultOf } from "../ResultOf.ts"
import { bytesOf, jsonOf, piecesOf, textOf } from "./Grown.ts"
import { type Kind, kind, markdown, orRefused, prose, tokens } from "./Kind.ts"

const provider = "model provider"
const answers = tokens(
  'data: {"choices":[{"delta":{"content":"Hello "}}]}\n\n¦' +
    'data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n¦' +
    'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\\"a\\":"}}]}}]}\n\n¦' +
    'data: {"choices":[{"delta":{"tool_calls":[{"index":1,"function":{"arguments":"x"}}]}}]}\n\n¦' +
    'data: {"type":"response.output_text.delta","delta":"Hi"}\n\n¦' +
    'data: {"type":"response.output_item.done","item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}\n\n¦' +
    'data: {"usage":{"prompt_tokens":1}}\n\n¦data: {"choices":[{"finish_reason":"stop"}]}\n\n¦data: [DONE]\n\n¦' +
    ": comment\n¦event: x\n¦data: ¦data:x\n¦data: {\n¦data: }\n¦\n¦\r¦\r\n¦id: 1\n¦word"
)
const schemas = [
  {
    type: "object",
    properties: {
      id: { type: "string", minLength: 1 },
      n: { type: "integer", enum: [1, 2, "x"] },
      list: {
        type: "array",
        items: {
          anyOf: [
            { type: "string" },
            { type: "object", required: ["a"], properties: { a: { type: "number", maximum: 3 } } }
          ]
        }
      }
    },
    required: ["id"],
    additionalProperties: false
  },
  {
    type: "object",
    oneOf: [{ required: ["a"] }, { required: ["b"] }],
    allOf: [{ properties: { a: { const: { deep: [1] } } } }],
    additionalProperties: { type: ["string", "null"] }
  }
]
const inputs = [
  { id: "x", n: 1, list: ["a", { a: 2 }, 7] },
  { a: { deep: [1] }, b: "y", c: null }
]
export const passage = (text: string, at: number) => ({
  index: at + 1,
  title: "Title",
  text,
  score: 0.9,
  documentId: `doc_${at}`,
  ordinal: 0
})

/** A chunk as the search finds it. */
export const found = (text: string, at = 0) => ({
  id: ChunkId.make(`chk_${at}`),
  documentId: DocumentId.make("doc_1"),
  sourceId: SourceId.make("src_1"),
  sourceName: text.slice(0, 200),
  title: "Title",
  heading: "",
  ordinal: at,
  text,
  url: "https://example.com/",
  score: 0.9,
  lexical: 0.9,
  semantic: 0.9
})

export const modelKinds: ReadonlyArray<Kind> = [
  ...(["chat", "responses"] as const).map((form) =>
    kind(
      [`answer in the form "${form}"`, provider, 5],
      (random) => piecesOf(random, bytesOf(textOf(random, answers))),
      ({ Provider }, pieces) => Provider.answered(form, pieces)
    )
  ),
  kind(
    ["reply shown in WhatsApp", provider, 4],
    (random) => textOf(random, markdown),
    ({ WhatsappSend }, text) => WhatsappSend.whatsapp.formatText(text).length
  ),
  kind(
    ["reply cut into messages", provider, 4],
    (random) => textOf(random, prose),
    ({ Split }, text) => Split.split(text, 200)
  ),
  kind(
    ["citations", provider, 2],
    (random) => textOf(random, tokens("[1]¦[¦]¦12¦[999]¦ ")),
    ({ Citations }, text) => {
      const citationStream = new Citations.CitationStream([], "removed")
      return [...citationStream.addText(text), ...citationStream.end()].length
    }
  ),
  kind(
    ["statements that marks stand for", provider, 3],
    (random) => textOf(random, tokens("It is so [1]. ¦It is¦[1]¦, ¦[2]\n¦word ¦。")),
    ({ Claims }, text) => Claims.claimsOf(text, new Set([1, 2])).length
  ),
  kind(
    ["statement compared with a passage", provider, 4],
    (random) => textOf(random, tokens('word ¦Name ¦12 ¦1.000,5¦not ¦. ¦, ¦`code x` ¦"a quote" ¦字¦é')),
    ({ Words }, text) =>
      resultOf(
        new Words.WordChecker().check({ text, passages: [{ index: 1, title: text.slice(0, 100), text }] })
      ).spans.length
  ),
  kind(
    ["passages of one section", "uploader", 3],
    (random) => textOf(random, tokens("word ¦sentence. ¦12 ¦é")),
    ({ Passages }, text) => {
      const chunks = Array.from({ length: Math.ceil(text.length / 100) }, (_, at) =>
        found(text.slice(at * 100, at * 100 + 100) + String(at), at)
      )
      return Passages.fitPassages(chunks, [], 32_000).length
    }
  ),
  kind(
    ["reply with values to be hidden", provider, 4],
    (random) => {
      const value = textOf(random, tokens('secret¦a¦b¦"¦é'))(1).slice(0, 200)
      const text = textOf(random, tokens('secret¦secret-value¦a¦b¦\\"¦ 42 ¦42¦%22¦é¦c2Vj'))
      const length = random.pick([1, 5, 100_000])
      return (factor) => ({ values: [value, "42", "secret-value"], length, text: text(factor) })
    },
    ({ Scrub }, { length, text, values }) => {
      const stream = new Scrub.Scrubber(values).streaming()
      let said = ""
      for (let at = 0; at < text.length; at += length) said += stream.push(text.slice(at, at + length))
      return said + stream.flush()
    }
  ),
  kind(
    ["values to be hidden", "REST client", 3],
    (random) => jsonOf(random, { list: ["secret-value", "12345", 'quo"ted'], more: { name: "abc" } }),
    ({ Bindings, Scrub }, value) =>
      new Scrub.Scrubber(Bindings.scalarValues(value as never)).text("my secret-value is 12345").length
  ),
  kind(
    ["arguments for a tool", provider, 4],
    (random) => {
      const at = random.below(2)
      const input = jsonOf(random, inputs[at])
      return (factor) => ({ schema: schemas[at], input: input(factor) })
    },
    ({ Arguments }, { input, schema }) => Arguments.validationProblems(schema as never, input as never).length
  ),
  kind(
    ["schema of a tool", "tool server", 3],
    (random) => {
      const at = random.below(2)
      const schema = jsonOf(random, schemas[at])
      return (factor) => ({ schema: schema(factor), input: inputs[at] })
    },
    ({ Arguments }, { input, schema }) =>
      orRefused(() => Arguments.validationProblems(schema as never, input as never).length)
  ),
  kind(
    ["request of a tool", provider, 3],
    (random) => {
      const input = jsonOf(random, { id: "x", q: "a b", deep: { er: [1] } })
      const method = random.pick(["GET", "POST"] as const)
      return (factor) => ({ input: input(factor), method })
    },
    ({ HttpRequest }, { input, method }) =>
      HttpRequest.requestOf(
        { method, url: "https://a.example/{id}?q=1", headers: {}, query: {} },
        { properties: { deep: { type: "object" } } },
        (typeof input === "object" ? input : {}) as never,
        [{ to: "body:/a/b", value: "x" }]
      )
  ),
  kind(
    ["extract from passages", "uploader", 3],
    (random) => textOf(random, markdown),
    ({ Extractive }, text) =>
      Extractive.extract("Where is the word of a sentence?", [passage(text, 0), passage("A word. ", 1)])
        .length
  )
]
