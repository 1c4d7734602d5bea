/** Texts of errors: a sentence in the user's language, and the service's own message if it has more detail. */
import { ApiError } from "../api/Client.ts"
import { germanCodes } from "./codes.ts"
import { commonTexts } from "./commonTexts.ts"
import { useLanguage, useText } from "./Language.tsx"

export interface Reason {
  readonly sentence: string
  /** The service's own message in English; null if `sentence` is this message. */
  readonly detail: string | null
}

/** Codes whose English message has more detail than the German sentence. */
const codesWithDetail: ReadonlySet<string> = new Set([
  "VALIDATION_ERROR",
  "CONFLICT",
  "FILE_TOO_LARGE",
  "FORBIDDEN",
  "NOT_CONFIGURED"
])

export const useReason = (): ((problem: unknown) => Reason) => {
  const t = useText(commonTexts)
  const { language } = useLanguage()
  return (problem) => {
    if (!(problem instanceof ApiError)) return { sentence: t.unreachable, detail: null }
    const { code, message } = problem
    const german = language === "de" ? germanCodes[code] : undefined
    return german === undefined
      ? { sentence: message, detail: null }
      : { sentence: german, detail: codesWithDetail.has(code) ? message : null }
  }
}
