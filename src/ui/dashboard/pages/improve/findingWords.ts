/** Texts about findings. */
import { texts } from "../../text/Language.tsx"
import { reasonTexts } from "./findingReasons.ts"

export const findingWords = texts(
  {
    contradiction: "Contradiction",
    duplicate: "Duplicate",
    stale: "Old page",
    all: (count: string) => `All ${count}`,
    contradictions: (count: string) => `Contradictions ${count}`,
    duplicates: (count: string) => `Duplicates ${count}`,
    stales: (count: string) => `Old pages ${count}`,
    ...reasonTexts.en
  },
  {
    contradiction: "Widerspruch",
    duplicate: "Dublette",
    stale: "Alte Seite",
    all: (count: string) => `Alle ${count}`,
    contradictions: (count: string) => `Widersprüche ${count}`,
    duplicates: (count: string) => `Dubletten ${count}`,
    stales: (count: string) => `Alte Seiten ${count}`,
    ...reasonTexts.de
  }
)
