/**
 * The languages of the dashboard. Each part has its own catalogue, `texts(english, german)`. It does not compile if a
 * sentence is missing in one language.
 */
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react"
import { store, stored } from "../window/stored.ts"

export const languages = { en: "English", de: "Deutsch" } as const
export type Language = keyof typeof languages

type Sentence = string | ((...values: ReadonlyArray<never>) => string)
type Catalogue = Readonly<Record<string, Sentence>>
/** The same sentences with the same parameters, in another language. */
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

const preferred = (): Language => {
  const chosen = stored(storageKey)
  if (isLanguage(chosen)) return chosen
  const spoken = navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase())
  return spoken.find(isLanguage) ?? "en"
}

interface Choice {
  readonly language: Language
  readonly choose: (language: Language) => void
}

const Current = createContext<Choice>({ language: "en", choose: () => {} })

export const LanguageProvider = ({ children }: { readonly children: ReactNode }) => {
  const [language, setLanguage] = useState(preferred)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const choice = useMemo(
    () => ({
      language,
      choose: (chosen: Language) => {
        store(storageKey, chosen)
        setLanguage(chosen)
      }
    }),
    [language]
  )
  return <Current value={choice}>{children}</Current>
}

export const useLanguage = () => useContext(Current)

/** The sentences of `catalogue` in the chosen language. */
export const useText = <C extends Catalogue>(catalogue: Texts<C>): Translated<C> =>
  catalogue[useLanguage().language]
