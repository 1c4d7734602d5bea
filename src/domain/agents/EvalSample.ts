/** Samples of OpenAI Evals, as cases: `{"input": [{"role": "user", "content": "…"}], "ideal": "…"}`. */
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"

const Message = Schema.Struct({ role: Schema.String, content: Schema.String })
const Sample = Schema.Struct({
  input: Schema.Union(Schema.String, Schema.Array(Message)),
  ideal: Schema.optionalWith(Schema.Union(Schema.String, Schema.Array(Schema.String)), { exact: true })
})

const decode = Schema.decodeUnknownEither(Sample)

export const isSample = (line: object): boolean => "input" in line && !("question" in line)

/** The only message of the user. The agent has instructions of its own instead of those of the system. */
const questionOf = (input: (typeof Sample.Type)["input"]): Either.Either<string, string> => {
  if (typeof input === "string") return Either.right(input)
  const others = input.filter(({ role }) => role !== "system" && role !== "developer")
  const [first, ...more] = others
  return first?.role === "user" && more.length === 0
    ? Either.right(first.content)
    : Either.left("input: a case has one message of the user, and none of an assistant")
}

/** One ideal answer is a fact. Of several, a judge decides whether the reply states one. */
const expectationOf = (ideal: (typeof Sample.Type)["ideal"]) => {
  const answers = typeof ideal === "string" ? [ideal] : (ideal ?? [])
  if (answers.length <= 1) return { expectFacts: answers }
  return {
    criterion: `The reply states one of these: ${answers.map((one) => JSON.stringify(one)).join(", ")}`
  }
}

/** The fields of a case, not yet checked; or what is wrong. */
export const caseOfSample = (line: object) =>
  Either.flatMap(
    Either.mapLeft(
      decode(line),
      () => 'a sample is {"input": [{"role": "user", "content": "…"}], "ideal": "…"}'
    ),
    ({ ideal, input }) => Either.map(questionOf(input), (question) => ({ question, ...expectationOf(ideal) }))
  )
