/**
 * Any service with a `/check-grounding` interface, one POST for each statement: `{ answerCandidate, facts: [{ factText,
 * attributes }], groundingSpec }` in, `{ supportScore, citedChunks: [{ chunkText, source }] }` out. What it does not tell,
 * words do.
 */
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as ProviderMetrics from "../../concurrency/ProviderMetrics.ts"
import { type Checked, type Claim, GroundingChecker, type Verdict } from "../GroundingChecker.ts"
import { OutboundHttp } from "../OutboundHttp.ts"
import * as Words from "./Words.ts"

export interface HttpOptions {
  /** The whole address, such as `https://grounding.example.com/v1/check-grounding`. */
  readonly url: string
  /** Sent as a bearer token; none for a server of one's own. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** For all statements of a reply together; 5 seconds by default. */
  readonly timeout?: Duration.DurationInput
}

/** Scores from which a statement is supported, and from which some of it is. */
const wholeScore = 0.75
const partScore = 0.4
const requestsAtOnce = 4
const maxAnswerBytes = 1_048_576

const Answer = Schema.parseJson(
  Schema.Struct({
    supportScore: Schema.Number.pipe(Schema.between(0, 1)),
    citedChunks: Schema.optionalWith(
      Schema.Array(
        Schema.Struct({ chunkText: Schema.String, source: Schema.optional(Schema.NumberFromString) })
      ),
      { default: () => [] }
    )
  })
)

class Failed extends Data.TaggedError("Failed")<{ readonly message: string }> {}

const call = { operation: "grounding", provider: "grounding" } as const

const bodyOf = ({ passages, text }: Claim): string =>
  JSON.stringify({
    answerCandidate: text,
    facts: passages.map((passage) => ({ factText: passage.text, attributes: { title: passage.title } })),
    groundingSpec: { citationThreshold: partScore }
  })

const verdictOf = ({ passages }: Claim, words: Verdict, answer: typeof Answer.Type): Verdict => {
  const spans = new Map(words.spans.map(({ index, text }) => [index, text]))
  // Its word on where something stands counts where it stands there; the best comes first.
  for (const { chunkText } of answer.citedChunks.toReversed()) {
    const passage = passages.find(({ text }) => chunkText !== "" && text.includes(chunkText))
    if (passage !== undefined) spans.set(passage.index, chunkText)
  }
  const { supportScore: score } = answer
  return {
    supported: score >= wholeScore ? "yes" : score >= partScore ? "partly" : "no",
    spans: Array.from(spans, ([index, text]) => ({ index, text })),
    reasons: score >= wholeScore ? [] : ["service"]
  }
}

/** Asks about one statement; fails in words that tell nothing of the address and the key. */
const makeAsk = ({ apiKey, timeout = "5 seconds", url }: HttpOptions) =>
  Effect.map(
    OutboundHttp,
    (http) => (claim: Claim) =>
      http
        .fetch({
          url,
          method: "POST",
          headers: {
            accept: "application/json",
            "content-type": "application/json",
            ...(apiKey === undefined ? {} : { authorization: `Bearer ${Redacted.value(apiKey)}` })
          },
          body: bodyOf(claim),
          maxBytes: maxAnswerBytes,
          timeout,
          maxRedirects: 0
        })
        .pipe(
          Effect.mapError(({ reason }) => new Failed({ message: `it could not be reached (${reason})` })),
          Effect.filterOrFail(
            ({ status }) => status >= 200 && status < 300,
            ({ status }) => new Failed({ message: `it answered with status ${status}` })
          ),
          Effect.flatMap(({ body }) =>
            Effect.mapError(
              Schema.decode(Answer)(Buffer.from(body).toString("utf8")),
              () => new Failed({ message: "its answer cannot be read" })
            )
          ),
          ProviderMetrics.timed(call, () => "failed")
        )
  )

/** Whether the service answers, asked about one sentence of our own. */
export const probe = (
  options: HttpOptions
): Effect.Effect<void, { readonly message: string }, OutboundHttp> =>
  Effect.flatMap(makeAsk(options), (ask) => {
    const text = "Spoke answers from the sources that it was given."
    return Effect.asVoid(ask({ text, passages: [{ index: 1, title: "", text }] }))
  })

const make = (options: HttpOptions) =>
  Effect.map(makeAsk(options), (ask) => {
    const { timeout = "5 seconds" } = options
    ProviderMetrics.begin(call)
    const check = Effect.fn("GroundingChecker.http")(function* (claims: ReadonlyArray<Claim>) {
      const words = yield* Words.check(claims)
      const verdicts = yield* Effect.forEach(
        claims,
        (claim, place) => {
          const own = words.verdicts[place] ?? Words.unknown
          return Effect.map(ask(claim), (answer) => verdictOf(claim, own, answer))
        },
        { concurrency: requestsAtOnce }
      ).pipe(
        Effect.timeoutFail({
          duration: timeout,
          onTimeout: () => new Failed({ message: "it did not answer in time" })
        }),
        Effect.catchTag("Failed", ({ message }) =>
          Effect.as(
            Effect.logWarning("The grounding service did not check a reply").pipe(
              Effect.annotateLogs({ reason: message })
            ),
            words.verdicts
          )
        )
      )
      const checked: Checked = { verdicts, inputTokens: 0, outputTokens: 0 }
      return checked
    })

    return GroundingChecker.of({ name: "http", check })
  })

/** A service that fails is not waited for longer than `timeout`; the reply is then checked by words. */
export const layerHttp = (options: HttpOptions): Layer.Layer<GroundingChecker, never, OutboundHttp> =>
  Layer.effect(GroundingChecker, make(options))
