/** Checks whether the sources support a reply, and decides what happens to an unsupported one. */
import type { Context, Effect } from "effect"
import type { GroundingChecker, Verdict } from "../../../capabilities/GroundingChecker.ts"
import type { Bill } from "../../../domain/billing/Cost.ts"
import type { Citation, Supported } from "../../../domain/chat/ChatTurn.ts"
import * as CheapSpans from "../../../concurrency/CheapSpans.ts"
import { claimsOf, type MarkedClaim } from "./Claims.ts"

export interface Grounding {
  /** The citations, with the results of the check. */
  readonly citations: ReadonlyArray<Citation>
  /** True when the sources do not support one of the statements that cite them. */
  readonly isUnsupported: boolean
  /** For the trace; null when nothing was checked. */
  readonly payload: Readonly<Record<string, unknown>> | null
  readonly inputTokens: number
  readonly outputTokens: number
  /** Costs of the models that the checker called. */
  readonly bills: ReadonlyArray<Bill>
}

interface CheckedClaim {
  readonly claim: MarkedClaim
  readonly verdict: Verdict
}

const severity: Record<Supported, number> = { no: 3, partly: 2, yes: 1 }
const severityOf = ({ verdict: { supported } }: CheckedClaim): number =>
  supported === null ? 0 : severity[supported]

/** The citation with its least supported statement; the first of equal ones. */
const withVerdict = (citation: Citation, checked: ReadonlyArray<CheckedClaim>): Citation => {
  const own = checked.filter(({ claim }) => claim.numbers.includes(citation.index))
  const [first, ...others] = own
  if (first === undefined) return citation
  const worst = others.reduce((one, other) => (severityOf(other) > severityOf(one) ? other : one), first)
  const { claim, verdict } = worst
  const span = verdict.spans.find(({ index }) => index === citation.index)
  return {
    ...citation,
    start: claim.start,
    end: claim.end,
    ...(span === undefined ? {} : { span: span.text }),
    ...(verdict.supported === null ? {} : { supported: verdict.supported })
  }
}

/** The result for a reply that needs no check: one without citations, or one of quotations. */
export const unchecked = (citations: ReadonlyArray<Citation>): Grounding => ({
  citations,
  isUnsupported: false,
  payload: null,
  inputTokens: 0,
  outputTokens: 0,
  bills: []
})

/** Checks every statement of `reply` that cites one of `citations`; by word overlap once `cancelled` completes. */
export const check = CheapSpans.fn("Grounding.check")(function* (
  checker: Context.Tag.Service<typeof GroundingChecker>,
  reply: string,
  citations: ReadonlyArray<Citation>,
  cancelled: Effect.Effect<unknown>
) {
  const passages = new Map(citations.map(({ index, text, title }) => [index, { index, title, text }]))
  const claims = citations.length === 0 ? [] : claimsOf(reply, new Set(passages.keys()))
  if (claims.length === 0) return unchecked(citations)
  const {
    bills = [],
    inputTokens,
    outputTokens,
    verdicts
  } = yield* checker.check(
    claims.map(({ numbers, text }) => ({
      text,
      passages: numbers.flatMap((number) => passages.get(number) ?? [])
    })),
    cancelled
  )
  const checked = claims.flatMap((claim, index) => {
    const verdict = verdicts[index]
    return verdict === undefined ? [] : [{ claim, verdict }]
  })
  const grounding: Grounding = {
    citations: citations.map((citation) => withVerdict(citation, checked)),
    isUnsupported: checked.some(({ verdict }) => verdict.supported === "no"),
    payload: {
      checker: checker.name,
      statements: checked.map(({ claim: { end, numbers, start }, verdict: { reasons, supported } }) => ({
        start,
        end,
        cites: numbers,
        supported,
        ...(reasons.length === 0 ? {} : { reasons })
      }))
    },
    inputTokens,
    outputTokens,
    bills
  }
  return grounding
})
