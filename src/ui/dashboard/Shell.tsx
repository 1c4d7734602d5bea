/** The frame of every page: navigation, language, colour scheme, and the signed-in user. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import {
  Archive,
  BookOpen,
  Bot,
  ChartColumn,
  KeyRound,
  LifeBuoy,
  Lightbulb,
  LogOut,
  type LucideIcon,
  MessagesSquare,
  Rocket,
  ScrollText,
  ShieldCheck,
  UserCog,
  UsersRound,
  Webhook
} from "lucide-react"
import { type ReactNode, useEffect, useState } from "react"
import { Link, useLocation } from "wouter"
import { agentProblems } from "./api/Agents.ts"
import { unreadCount } from "./api/Inbox.ts"
import { atLeast, session, signOut, type User } from "./api/Session.ts"
import { Avatar } from "./components/Avatar.tsx"
import { Button } from "./components/Button.tsx"
import { Confirm } from "./components/Dialog.tsx"
import { PlainSelect } from "./components/select/PlainSelect.tsx"
import { preload } from "./pages.ts"
import { useNotifications } from "./window/notifications.ts"
import { countInWindow } from "./window/title.ts"
import { useShortcuts } from "./window/useShortcuts.ts"
import { dropDrafts, useKeptDrafts } from "./forms/keptDrafts.ts"
import { useScheme } from "./Scheme.ts"
import { type Language, languages, texts, useLanguage, useText } from "./text/Language.tsx"
import mark from "./mark.svg"
import css from "./Shell.module.css"

const words = texts(
  {
    skip: "Skip to content",
    navigation: "Main navigation",
    unread: (count: string) => `${count} unread`,
    problems: (count: string) => (count === "1" ? "1 problem" : `${count} problems`),
    waiting: (count: number) =>
      count === 1 ? "A conversation waits for you." : `${count} conversations wait for you.`,
    start: "Start",
    agents: "Agents",
    conversations: "Conversations",
    insights: "Insights",
    sources: "Sources",
    usage: "Usage",
    people: "People",
    team: "Team",
    webhooks: "Webhooks",
    tokens: "Access tokens",
    audit: "Audit",
    retention: "Retention",
    signOn: "Single sign-on",
    sessions: "Where you are signed in",
    documentation: "Documentation",
    menu: "Menu",
    language: "Language",
    scheme: "Appearance",
    system: "System",
    light: "Light",
    dark: "Dark",
    signOut: "Sign out",
    unsaved: (titles: string) => `This has not been saved, and is lost when you sign out: ${titles}.`
  },
  {
    skip: "Zum Inhalt springen",
    navigation: "Hauptnavigation",
    unread: (count: string) => `${count} ungelesen`,
    problems: (count: string) => (count === "1" ? "1 Problem" : `${count} Probleme`),
    waiting: (count: number) =>
      count === 1 ? "Ein Gespräch wartet auf Sie." : `${count} Gespräche warten auf Sie.`,
    start: "Erste Schritte",
    agents: "Agenten",
    conversations: "Gespräche",
    insights: "Einblicke",
    sources: "Quellen",
    usage: "Verbrauch",
    people: "Personen",
    team: "Team",
    webhooks: "Webhooks",
    tokens: "Zugangstoken",
    audit: "Protokoll",
    retention: "Aufbewahrung",
    signOn: "Single Sign-on",
    sessions: "Wo Sie angemeldet sind",
    documentation: "Dokumentation",
    menu: "Menü",
    language: "Sprache",
    scheme: "Darstellung",
    system: "System",
    light: "Hell",
    dark: "Dunkel",
    signOut: "Abmelden",
    unsaved: (titles: string) => `Das ist nicht gespeichert und geht beim Abmelden verloren: ${titles}.`
  }
)

const isLanguage = (key: string): key is Language => Object.hasOwn(languages, key)
const languageOptions = Object.entries(languages).flatMap(([key, name]) =>
  isLanguage(key) ? [[key, name] as const] : []
)

/** Maximum displayed count. */
const maxShown = 99

interface CountProps {
  readonly count: number
  readonly meaning: (shown: string) => string
  readonly isBad?: boolean
}

const Count = ({ count, isBad = false, meaning }: CountProps) => {
  const shown = count > maxShown ? `${maxShown}+` : String(count)
  return (
    <span className={`${css["count"]} ${isBad ? css["bad"] : ""}`}>
      <span aria-hidden>{isBad ? `! ${shown}` : shown}</span>
      <span className="visually-hidden">{meaning(shown)}</span>
    </span>
  )
}

export const Shell = ({ user, children }: { readonly user: User; readonly children: ReactNode }) => {
  const t = useText(words)
  const { language, choose } = useLanguage()
  const [scheme, setScheme] = useScheme()
  const queries = useQueryClient()
  const [location, navigate] = useLocation()
  useShortcuts({ "g i": () => navigate("/conversations") })
  const { data: counted } = useQuery(unreadCount)
  const unread = counted ?? 0
  const { data: problems = [] } = useQuery(agentProblems(user))
  useNotifications(counted, t.waiting)
  useEffect(() => countInWindow(unread), [unread])
  const kept = useKeptDrafts(user.id)
  const leave = () =>
    signOut().finally(() => {
      // The next user of this browser must not read drafts of this one.
      dropDrafts(user.id)
      queries.setQueryData(session.queryKey, null)
      queries.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" })
    })
  const exit = <LogOut aria-hidden size={17} strokeWidth={1.75} />
  const [open, setOpen] = useState(false)
  // On a phone the menu closes after navigation.
  useEffect(() => setOpen(false), [location])
  const links: ReadonlyArray<readonly [string, string, LucideIcon]> = [
    // Only for roles that may configure agents.
    ...(atLeast(user.role, "admin") ? ([["/start", t.start, Rocket]] as const) : []),
    ["/agents", t.agents, Bot],
    ["/conversations", t.conversations, MessagesSquare],
    ["/insights", t.insights, Lightbulb],
    ["/sources", t.sources, BookOpen],
    ["/usage", t.usage, ChartColumn],
    // Personal data and the audit trail are only for admins.
    ...(atLeast(user.role, "admin") ? ([["/people", t.people, UsersRound]] as const) : []),
    ["/team", t.team, UserCog],
    ...(atLeast(user.role, "admin")
      ? ([
          ["/webhooks", t.webhooks, Webhook],
          ["/tokens", t.tokens, KeyRound],
          ["/audit", t.audit, ScrollText],
          ["/retention", t.retention, Archive]
        ] as const)
      : []),
    ...(atLeast(user.role, "owner") ? ([["/single-sign-on", t.signOn, ShieldCheck]] as const) : [])
  ]
  return (
    <div className={css["shell"]}>
      <a className={css["skip"]} href="#content">
        {t.skip}
      </a>
      <aside className={css["side"]}>
        <div className={css["top"]}>
          <span className={css["brand"]}>
            <img src={mark} alt="" width={28} height={28} />
            Spoke
          </span>
          <button
            type="button"
            className={css["menu"]}
            aria-expanded={open}
            aria-controls="menu"
            onClick={() => setOpen(!open)}
          >
            <span aria-hidden className={css["bars"]} />
            {t.menu}
          </button>
        </div>
        <div id="menu" className={`${css["fold"]} ${open ? css["unfolded"] : ""}`}>
          <nav aria-label={t.navigation}>
            <ul className={css["links"]}>
              {links.map(([path, name, Icon]) => (
                <li key={path}>
                  <Link
                    href={path}
                    className={css["link"] ?? ""}
                    aria-current={location.startsWith(path) ? "page" : undefined}
                    // The page is there by the time the link is released.
                    onPointerEnter={() => preload(path)}
                    onFocus={() => preload(path)}
                  >
                    <Icon aria-hidden size={17} strokeWidth={1.75} />
                    {name}
                    {path === "/conversations" && unread > 0 ? (
                      <Count count={unread} meaning={t.unread} />
                    ) : null}
                    {path === "/agents" && problems.length > 0 ? (
                      <Count count={problems.length} meaning={t.problems} isBad />
                    ) : null}
                  </Link>
                </li>
              ))}
            </ul>
          </nav>
          <div className={css["foot"]}>
            <a className={css["link"]} href="/docs/guide">
              <LifeBuoy aria-hidden size={17} strokeWidth={1.75} />
              {t.documentation}
            </a>
            <div className={css["choices"]}>
              <PlainSelect label={t.language} options={languageOptions} value={language} onChange={choose} />
              <PlainSelect
                label={t.scheme}
                options={[
                  ["system", t.system],
                  ["light", t.light],
                  ["dark", t.dark]
                ]}
                value={scheme}
                onChange={setScheme}
              />
            </div>
            <div className={css["account"]}>
              <Avatar name={user.email} />
              <Link className={css["user"] ?? ""} href="/sessions" title={t.sessions}>
                {user.email}
              </Link>
              {kept.length === 0 ? (
                <Button kind="quiet" icon aria-label={t.signOut} onPress={() => void leave()}>
                  {exit}
                </Button>
              ) : (
                <Confirm
                  trigger={
                    <Button kind="quiet" icon aria-label={t.signOut}>
                      {exit}
                    </Button>
                  }
                  title={t.signOut}
                  question={t.unsaved(kept.map(({ title }) => title).join(", "))}
                  action={t.signOut}
                  onConfirm={leave}
                />
              )}
            </div>
          </div>
        </div>
      </aside>
      {children}
    </div>
  )
}
