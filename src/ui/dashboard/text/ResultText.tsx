/** A message of the service about an experiment, translated if possible. */
import { useLanguage } from "./Language.tsx"
import { germanResult } from "./resultTranslations.ts"

export const ResultText = ({ message }: { readonly message: string }) => {
  const { language } = useLanguage()
  const german = language === "de" ? germanResult(message) : null
  return german === null ? <span lang="en">{message}</span> : <span>{german}</span>
}
