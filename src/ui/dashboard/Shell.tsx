/** What every page stands in: navigation, language, scheme, who is signed in. */
import { useQueryClient } from "@tanstack/react-query"
import { type ReactNode, useEffect, useState } from "react"
import { Link, useLocation } from "wouter"
import { atLeast, session, signOut, type User } from "./api/Session.ts"
import { Button } from "./components/Button.tsx"
import { Select } from "./components/Field.tsx"
import { type Language, languages, texts, useLanguage, useText } from "./text/Language.tsx"
import mark from "./mark.svg"
import css from "./Shell.module.css"

const words = texts(
  {
    skip: "Skip to content",
    navigation: "Main navigation",
    agents: "Agents",
    conversations: "Conversations",
    sources: "Sources",
    usage: "Usage",
    people: "People",
    team: "Team",
    audit: "Audit",
    language: "Language",
    scheme: "Appearance",
    system: "As the system",
    light: "Light",
    dark: "Dark",
    signOut: "Sign out"
  },
  {
    skip: "Zum Inhalt springen",
    navigation: "Hauptnavigation",
    agents: "Agenten",
    conversations: "Gespräche",
    sources: "Quellen",
    usage: "Verbrauch",
    people: "Personen",
    team: "Team",
    audit: "Protokoll",
    language: "Sprache",
    scheme: "Darstellung",
    system: "Wie das System",
    light: "Hell",
    dark: "Dunkel",
    signOut: "Abmelden"
  }
)

const schemes = ["system", "light", "dark"] as const
type Scheme = (typeof schemes)[number]
const schemeKey = "spoke.scheme"

const storedScheme = (): Scheme => {
  const stored = localStorage.getItem(schemeKey)
  return schemes.find((scheme) => scheme === stored) ?? "system"
}

const useScheme = () => {
  const [scheme, setScheme] = useState(storedScheme)
  useEffect(() => {
    localStorage.setItem(schemeKey, scheme)
    if (scheme === "system") delete document.documentElement.dataset["scheme"]
    else document.documentElement.dataset["scheme"] = scheme
  }, [scheme])
  return [scheme, setScheme] as const
}

const isLanguage = (key: string): key is Language => Object.hasOwn(languages, key)
const languageOptions = Object.entries(languages).flatMap(([key, name]) =>
  isLanguage(key) ? [[key, name] as const] : []
)

export const Shell = ({ user, children }: { readonly user: User; readonly children: ReactNode }) => {
  const t = useText(words)
  const { language, choose } = useLanguage()
  const [scheme, setScheme] = useScheme()
  const queries = useQueryClient()
  const [location] = useLocation()
  const links = [
    ["/agents", t.agents],
    ["/conversations", t.conversations],
    ["/sources", t.sources],
    ["/usage", t.usage],
    // Personal data and the trail are the admins' business.
    ...(atLeast(user.role, "admin") ? ([["/people", t.people]] as const) : []),
    ["/team", t.team],
    ...(atLeast(user.role, "admin") ? ([["/audit", t.audit]] as const) : [])
  ] as const
  return (
    <div className={css["shell"]}>
      <a className={css["skip"]} href="#content">
        {t.skip}
      </a>
      <aside className={css["side"]}>
        <span className={css["brand"]}>
          <img src={mark} alt="" width={28} height={28} />
          Spoke
        </span>
        <nav aria-label={t.navigation}>
          <ul className={css["links"]}>
            {links.map(([path, name]) => (
              <li key={path}>
                <Link
                  href={path}
                  className={css["link"] ?? ""}
                  aria-current={location.startsWith(path) ? "page" : undefined}
                >
                  {name}
                </Link>
              </li>
            ))}
          </ul>
        </nav>
        <div className={css["foot"]}>
          <Select compact label={t.language} options={languageOptions} value={language} onChange={choose} />
          <Select
            compact
            label={t.scheme}
            options={[
              ["system", t.system],
              ["light", t.light],
              ["dark", t.dark]
            ]}
            value={scheme}
            onChange={setScheme}
          />
          <span className={css["user"]}>{user.email}</span>
          <Button
            kind="quiet"
            onPress={() => {
              void signOut().finally(() => {
                queries.setQueryData(session.queryKey, null)
                queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" })
              })
            }}
          >
            {t.signOut}
          </Button>
        </div>
      </aside>
      {children}
    </div>
  )
}
