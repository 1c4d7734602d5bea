/** The service's message about an experiment or one of its results, in the reader's language if there is a translation. */
import { useLanguage } from "./Language.tsx"
import { germanResult } from "./resultWords.ts"

export const ResultText = ({ message }: { readonly message: string }) => {
  const { language } = useLanguage()
  const german = language === "de" ? germanResult(message) : null
  return german === null ? <span lang="en">{message}</span> : <span>{german}</span>
}
