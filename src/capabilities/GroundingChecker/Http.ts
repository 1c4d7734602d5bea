/**
 * Any service with a `/check-grounding` endpoint, with one POST per statement. Request: `{ answerCandidate, facts: [{
 * factText, attributes }], groundingSpec }`. Answer: `{ supportScore, citedChunks: [{ chunkText, source }] }`. Where
 * the service gives no result, word overlap is used.
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
import { MiB } from "../../domain/Bytes.ts"

export interface HttpOptions {
  /** The full address, such as `https://grounding.example.com/v1/check-grounding`. */
  readonly url: string
  /** Sent as a bearer token. Optional, for a server without authentication. */
  readonly apiKey?: Redacted.Redacted | undefined
  /** Time-out for all statements of a reply together; default: 5 seconds. */
  readonly timeout?: Duration.DurationInput
}

/** Minimum scores of a fully, and of a partly supported statement. */
const minFullScore = 0.75
const minPartialScore = 0.4
const maxConcurrentRequests = 4
const maxAnswerBytes = MiB

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
    groundingSpec: { citationThreshold: minPartialScore }
  })

const verdictOf = ({ passages }: Claim, words: Verdict, answer: typeof Answer.Type): Verdict => {
  const spans = new Map(words.spans.map(({ index, text }) => [index, text]))
  // A cited chunk counts only if it is in the passage. The best comes first.
  for (const { chunkText } of answer.citedChunks.toReversed()) {
    const passage = passages.find(({ text }) => chunkText !== "" && text.includes(chunkText))
    if (passage !== undefined) spans.set(passage.index, chunkText)
  }
  const { supportScore: score } = answer
  return {
    supported: score >= minFullScore ? "yes" : score >= minPartialScore ? "partly" : "no",
    spans: Array.from(spans, ([index, text]) => ({ index, text })),
    reasons: score >= minFullScore ? [] : ["service"]
  }
}

/** Checks one statement. Error messages contain neither the address nor the key. */
const makeCheckClaim = ({ apiKey, timeout = "5 seconds", url }: HttpOptions) =>
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

/** Checks that the service answers, with a sentence of our own. */
export const probe = (
  options: HttpOptions
): Effect.Effect<void, { readonly message: string }, OutboundHttp> =>
  Effect.flatMap(makeCheckClaim(options), (checkClaim) => {
    const text = "Spoke answers from the sources that it was given."
    return Effect.asVoid(checkClaim({ text, passages: [{ index: 1, title: "", text }] }))
  })

const make = (options: HttpOptions) =>
  Effect.map(makeCheckClaim(options), (checkClaim) => {
    const { timeout = "5 seconds" } = options
    ProviderMetrics.register(call)
    const check = Effect.fn("GroundingChecker.http")(function* (
      claims: ReadonlyArray<Claim>,
      cancelled: Effect.Effect<unknown> = Effect.never
    ) {
      const words = yield* Words.check(claims)
      const asked = Effect.forEach(
        claims,
        (claim, index) => {
          const wordVerdict = words.verdicts[index] ?? Words.unknown
          return Effect.map(checkClaim(claim), (answer) => verdictOf(claim, wordVerdict, answer))
        },
        { concurrency: maxConcurrentRequests }
      )
      const verdicts = yield* Effect.raceFirst(
        Effect.zipRight(cancelled, new Failed({ message: "the turn ended before its answer" })),
        Effect.timeoutFail(
          // The other side of the race runs first: once the turn is cancelled, nothing is requested.
          Effect.zipRight(Effect.yieldNow(), asked),
          { duration: timeout, onTimeout: () => new Failed({ message: "it did not answer in time" }) }
        )
      ).pipe(
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

/** If the service does not answer within `timeout`, the reply is checked by word overlap. */
export const layerHttp = (options: HttpOptions): Layer.Layer<GroundingChecker, never, OutboundHttp> =>
  Layer.effect(GroundingChecker, make(options))
