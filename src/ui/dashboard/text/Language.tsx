/**
 * The languages of the dashboard. Each component has its own catalogue: `texts(english, german)`. It does not compile
 * if a text is missing in one language.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react"
import { readStored, store } from "../window/localStorage.ts"

export const languages = { en: "English", de: "Deutsch" } as const
export type Language = keyof typeof languages

type Entry = string | ((...values: ReadonlyArray<never>) => string)
type Catalogue = Readonly<Record<string, Entry>>
/** The same texts with the same parameters in another language. */
type Translated<C extends Catalogue> = {
  readonly [K in keyof C]: C[K] extends (...values: infer V) => string ? (...values: V) => string : string
}

export interface Texts<C extends Catalogue> {
  readonly en: Translated<C>
  readonly de: Translated<C>
}

export const texts = <C extends Catalogue>(en: C & Translated<C>, de: Translated<C>): Texts<C> => ({ en, de })

const storageKey = "spoke.language"
const isLanguage = (text: string | null | undefined): text is Language =>
  text !== null && text !== undefined && Object.hasOwn(languages, text)

const initialLanguage = (): Language => {
  const chosen = readStored(storageKey)
  if (isLanguage(chosen)) return chosen
  const browserLanguages = navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase())
  return browserLanguages.find(isLanguage) ?? "en"
}

interface LanguageSetting {
  readonly language: Language
  readonly choose: (language: Language) => void
}

const LanguageContext = createContext<LanguageSetting>({ language: "en", choose: () => {} })

export const LanguageProvider = ({ children }: { readonly children: ReactNode }) => {
  const [language, setLanguage] = useState(initialLanguage)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const setting = useMemo(
    () => ({
      language,
      choose: (chosen: Language) => {
        store(storageKey, chosen)
        setLanguage(chosen)
      }
    }),
    [language]
  )
  return <LanguageContext value={setting}>{children}</LanguageContext>
}

export const useLanguage = () => useContext(LanguageContext)

/** The texts of `catalogue` in the chosen language. */
export const useText = <C extends Catalogue>(catalogue: Texts<C>): Translated<C> =>
  catalogue[useLanguage().language]
