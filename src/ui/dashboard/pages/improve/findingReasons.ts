/** The reason of a finding as text. */
import type { Finding, FindingReason } from "../../../../domain/knowledge/Finding.ts"

const english = {
  number: (one: string, other: string) => `The numbers differ: ${one} and ${other}.`,
  date: (one: string, other: string) => `The dates differ: ${one} and ${other}.`,
  negation: "One of them denies what the other says.",
  same: (share: string) => `${share} of the shorter passage stands in the other one, too.`,
  unchanged: (days: string) => `Unchanged for ${days} days.`,
  rated: (down: string, up: string) =>
    `Replies that cite it were rated down ${down} and up ${up} times in the last 90 days.`
}

const german: typeof english = {
  number: (one: string, other: string) => `Die Zahlen weichen ab: ${one} und ${other}.`,
  date: (one: string, other: string) => `Die Daten weichen ab: ${one} und ${other}.`,
  negation: "Das eine verneint, was das andere sagt.",
  same: (share: string) => `${share} des kürzeren Abschnitts stehen auch im anderen.`,
  unchanged: (days: string) => `Seit ${days} Tagen unverändert.`,
  rated: (down: string, up: string) =>
    `Antworten, die sie zitieren, wurden in den letzten 90 Tagen ${down}-mal schlecht und ${up}-mal gut bewertet.`
}

export const reasonTexts = { en: english, de: german }

interface Format {
  readonly number: (value: number) => string
  readonly percent: (value: number) => string
}

/** The reason, in one or two sentences. */
export const reasonText = (
  t: typeof reasonTexts.en,
  { number, percent }: Format,
  reason: typeof FindingReason.Encoded
): string => {
  switch (reason.kind) {
    case "number":
    case "date":
      return t[reason.kind](reason.one.join(", "), reason.other.join(", "))
    case "negation":
      return t.negation
    case "same":
      return t.same(percent(reason.share))
    case "unchanged":
      return `${t.unchanged(number(reason.days))} ${t.rated(number(reason.thumbsDown), number(reason.thumbsUp))}`
  }
}

/** The numbers and dates in which the first and the second passage of a finding differ. */
export const differingValues = ({
  reasons
}: Pick<typeof Finding.Encoded, "reasons">): readonly [ReadonlyArray<string>, ReadonlyArray<string>] => {
  const withValues = reasons.flatMap((reason) =>
    reason.kind === "number" || reason.kind === "date" ? [reason] : []
  )
  return [withValues.flatMap(({ one }) => one), withValues.flatMap(({ other }) => other)]
}
