/** The navigation: the pages of the workspace, or the parts of the current agent. */
import { useQuery } from "@tanstack/react-query"
import {
  Archive,
  ArrowLeft,
  BookOpen,
  Bot,
  ChartColumn,
  FlaskConical,
  History,
  KeyRound,
  Lightbulb,
  ListChecks,
  type LucideIcon,
  MessageCircle,
  MessagesSquare,
  Radio,
  Rocket,
  ScrollText,
  Settings2,
  ShieldCheck,
  SquareTerminal,
  TrendingUp,
  UserCog,
  UsersRound,
  Webhook,
  Wrench
} from "lucide-react"
import type { ReactNode } from "react"
import { Link, useLocation } from "wouter"
import { agent, agentProblems } from "../api/Agents.ts"
import { atLeast, type User } from "../api/Session.ts"
import { Avatar } from "../components/Avatar.tsx"
import { preload } from "../pages.ts"
import { texts, useText } from "../text/Language.tsx"
import { agentMenu, type Part, usePartNames } from "./agentMenu.ts"
import css from "./Shell.module.css"

const words = texts(
  {
    navigation: "Main navigation",
    unread: (count: string) => `${count} unread`,
    problems: (count: string) => (count === "1" ? "1 problem" : `${count} problems`),
    start: "Start",
    agents: "Agents",
    allAgents: "All agents",
    conversations: "Conversations",
    insights: "Insights",
    sources: "Sources",
    usage: "Usage",
    workspace: "Workspace",
    people: "People",
    team: "Team",
    webhooks: "Webhooks",
    tokens: "Access tokens",
    audit: "Audit",
    retention: "Retention",
    signOn: "Single sign-on",
    build: "Build",
    connect: "Connect",
    measure: "Improve"
  },
  {
    navigation: "Hauptnavigation",
    unread: (count: string) => `${count} ungelesen`,
    problems: (count: string) => (count === "1" ? "1 Problem" : `${count} Probleme`),
    start: "Erste Schritte",
    agents: "Agenten",
    allAgents: "Alle Agenten",
    conversations: "Gespräche",
    insights: "Einblicke",
    sources: "Quellen",
    usage: "Verbrauch",
    workspace: "Arbeitsbereich",
    people: "Personen",
    team: "Team",
    webhooks: "Webhooks",
    tokens: "Zugangstoken",
    audit: "Protokoll",
    retention: "Aufbewahrung",
    signOn: "Single Sign-on",
    build: "Aufbauen",
    connect: "Verbinden",
    measure: "Verbessern"
  }
)

/** Higher counts are shown as `99+`. */
const maxShown = 99

interface CountProps {
  readonly count: number
  readonly meaning: (shown: string) => string
  readonly isProblem?: boolean
}

const Count = ({ count, isProblem = false, meaning }: CountProps) => {
  const shown = count > maxShown ? `${maxShown}+` : String(count)
  return (
    <span className={`${css["count"]} ${isProblem ? css["bad"] : ""}`}>
      <span aria-hidden>{isProblem ? `! ${shown}` : shown}</span>
      <span className="visually-hidden">{meaning(shown)}</span>
    </span>
  )
}

interface Item {
  readonly path: string
  readonly name: string
  readonly icon: LucideIcon
  readonly count?: ReactNode
}

interface Group {
  /** Null for the first group. */
  readonly name: string | null
  readonly items: ReadonlyArray<Item>
}

interface GroupsProps {
  readonly groups: ReadonlyArray<Group>
  readonly label: string
  readonly currentPath: string
}

const NavigationGroups = ({ currentPath, groups, label }: GroupsProps) => {
  const isCurrent = ({ path }: Item) => currentPath === path || currentPath.startsWith(`${path}/`)
  return (
    <nav aria-label={label} className={css["groups"]}>
      {groups.map(({ items, name }) =>
        items.length === 0 ? null : (
          <div key={name ?? ""} className={css["group"]}>
            {name === null ? null : (
              <span aria-hidden className={css["groupName"]}>
                {name}
              </span>
            )}
            <ul className={css["links"]} {...(name === null ? {} : { "aria-label": name })}>
              {items.map((item) => {
                const { count, icon: Icon, name: title, path } = item
                return (
                  <li key={path}>
                    <Link
                      href={path}
                      className={css["link"] ?? ""}
                      aria-current={isCurrent(item) ? "page" : undefined}
                      // Loads the page before the link is pressed.
                      onPointerEnter={() => preload(path)}
                      onFocus={() => preload(path)}
                    >
                      <Icon aria-hidden size={16} strokeWidth={1.75} />
                      {title}
                      {count}
                    </Link>
                  </li>
                )
              })}
            </ul>
          </div>
        )
      )}
    </nav>
  )
}

interface Props {
  readonly user: User
  readonly unread: number
}

const icons: Readonly<Record<Part, LucideIcon>> = {
  try: SquareTerminal,
  sources: BookOpen,
  tools: Wrench,
  settings: Settings2,
  versions: History,
  widget: MessageCircle,
  channels: Radio,
  keys: KeyRound,
  improve: TrendingUp,
  cases: ListChecks,
  experiments: FlaskConical
}

const AgentNavigation = ({
  currentPath,
  id,
  unread,
  user
}: Props & { readonly currentPath: string; readonly id: string }) => {
  const t = useText(words)
  const [firstPart] = agentMenu.filter(({ minRole }) => atLeast(user.role, minRole))
  const names = usePartNames()
  const { data } = useQuery(agent(id))
  const { data: problems = [] } = useQuery(agentProblems(user))
  const failingCount = (kind: string) =>
    problems.filter((problem) => problem.agentId === id && problem.kind === kind).length
  const groupOf = (name: string, group: string): Group => ({
    name,
    items: agentMenu
      .filter((part) => part.group === group && atLeast(user.role, part.minRole))
      .map(({ part }) => {
        const problemCount =
          part === "channels" ? failingCount("channel") : part === "tools" ? failingCount("tool") : 0
        return {
          path: `/agents/${id}/${part}`,
          name: names[part],
          icon: icons[part],
          ...(problemCount === 0
            ? {}
            : { count: <Count count={problemCount} meaning={t.problems} isProblem /> })
        }
      })
  })
  return (
    <>
      <div className={css["agent"]}>
        <Link href="/agents" className={css["back"] ?? ""}>
          <ArrowLeft aria-hidden size={14} />
          {t.allAgents}
        </Link>
        <span className={css["agentName"]} lang="">
          <Avatar name={data?.name ?? ""} />
          <strong>{data?.name}</strong>
        </span>
      </div>
      <NavigationGroups
        label={t.navigation}
        // The path of the agent itself shows its first part.
        currentPath={currentPath === `/agents/${id}` ? `${currentPath}/${firstPart?.part}` : currentPath}
        groups={[
          groupOf(t.build, "build"),
          groupOf(t.connect, "connect"),
          groupOf(t.measure, "measure"),
          {
            name: t.workspace,
            items: [
              {
                path: "/conversations",
                name: t.conversations,
                icon: MessagesSquare,
                ...(unread === 0 ? {} : { count: <Count count={unread} meaning={t.unread} /> })
              }
            ]
          }
        ]}
      />
    </>
  )
}

const WorkspaceNavigation = ({ currentPath, unread, user }: Props & { readonly currentPath: string }) => {
  const t = useText(words)
  const { data: problems = [] } = useQuery(agentProblems(user))
  const isAdmin = atLeast(user.role, "admin")
  return (
    <NavigationGroups
      label={t.navigation}
      currentPath={currentPath}
      groups={[
        {
          name: null,
          items: [
            // Only for roles that may configure agents.
            ...(isAdmin ? [{ path: "/start", name: t.start, icon: Rocket }] : []),
            {
              path: "/agents",
              name: t.agents,
              icon: Bot,
              ...(problems.length === 0
                ? {}
                : { count: <Count count={problems.length} meaning={t.problems} isProblem /> })
            },
            {
              path: "/conversations",
              name: t.conversations,
              icon: MessagesSquare,
              ...(unread === 0 ? {} : { count: <Count count={unread} meaning={t.unread} /> })
            },
            { path: "/insights", name: t.insights, icon: Lightbulb },
            { path: "/sources", name: t.sources, icon: BookOpen },
            { path: "/usage", name: t.usage, icon: ChartColumn }
          ]
        },
        {
          name: t.workspace,
          items: [
            // Personal data and the audit trail are only for admins.
            ...(isAdmin ? [{ path: "/people", name: t.people, icon: UsersRound }] : []),
            { path: "/team", name: t.team, icon: UserCog },
            ...(isAdmin
              ? [
                  { path: "/webhooks", name: t.webhooks, icon: Webhook },
                  { path: "/tokens", name: t.tokens, icon: KeyRound },
                  { path: "/audit", name: t.audit, icon: ScrollText },
                  { path: "/retention", name: t.retention, icon: Archive }
                ]
              : []),
            ...(atLeast(user.role, "owner")
              ? [{ path: "/single-sign-on", name: t.signOn, icon: ShieldCheck }]
              : [])
          ]
        }
      ]}
    />
  )
}

export const Navigation = (props: Props) => {
  const [location] = useLocation()
  const id = /^\/agents\/([^/]+)/u.exec(location)?.[1]
  return id === undefined ? (
    <WorkspaceNavigation {...props} currentPath={location} />
  ) : (
    <AgentNavigation {...props} currentPath={location} id={id} />
  )
}
