/** One agent, in tabs. */
import { useQuery, useQueryClient } from "@tanstack/react-query"
import { lazy, type ReactNode, Suspense } from "react"
import { useLocation } from "wouter"
import { agent as agentQuery, type Agent, agents, deleteAgent } from "../../api/Agents.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { MoreMenu } from "../../components/MoreMenu.tsx"
import { Page } from "../../components/Page.tsx"
import { Tabs } from "../../components/Tabs.tsx"
import { texts, useText } from "../../text/Language.tsx"
import { LastFailure } from "./LastFailure.tsx"
import { LoadedPage } from "../LoadedPage.tsx"

const Channels = lazy(() => import("./Channels.tsx"))
const Designer = lazy(() => import("../widget/Designer.tsx"))
const Experiments = lazy(() => import("./Experiments.tsx"))
const Improve = lazy(() => import("../improve/Improve.tsx"))
const Keys = lazy(() => import("./Keys.tsx"))
const Sources = lazy(() => import("./AgentSources.tsx"))
const Settings = lazy(() => import("./Settings.tsx"))
const TestCases = lazy(() => import("./TestCases.tsx"))
const Tools = lazy(() => import("./Tools.tsx"))
const Versions = lazy(() => import("./Versions.tsx"))
const Workbench = lazy(() => import("../workbench/Workbench.tsx"))

const words = texts(
  {
    parts: "Parts of the agent",
    tryIt: "Workbench",
    sources: "Sources",
    settings: "Settings",
    versions: "Versions",
    improve: "Improve",
    cases: "Test cases",
    experiments: "Experiments",
    keys: "Keys",
    tools: "Tools",
    channels: "Channels",
    widget: "Widget",
    removal: "Delete agent",
    question: (name: string) =>
      `“${name}” is gone with its sources, conversations, tools and keys. It cannot be undone.`
  },
  {
    parts: "Teile des Agenten",
    tryIt: "Werkbank",
    sources: "Quellen",
    settings: "Einstellungen",
    versions: "Versionen",
    improve: "Verbessern",
    cases: "Testfälle",
    experiments: "Experimente",
    keys: "Schlüssel",
    tools: "Werkzeuge",
    channels: "Kanäle",
    widget: "Widget",
    removal: "Agent löschen",
    question: (name: string) =>
      `„${name}“ ist dann fort, samt Quellen, Gesprächen, Werkzeugen und Schlüsseln. Das lässt sich nicht rückgängig machen.`
  }
)

interface Props {
  readonly id: string
  readonly tab: string
  readonly user: User
}

const Removal = ({ agent }: { readonly agent: Agent }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  return (
    <MoreMenu
      title={t.removal}
      question={t.question(agent.name)}
      onConfirm={async () => {
        await deleteAgent(agent.id)
        navigate("/agents")
        await queries.invalidateQueries({ queryKey: agents.queryKey, exact: true })
      }}
    />
  )
}

const AgentPage = ({ id, tab, user }: Props) => {
  const t = useText(words)
  const [, navigate] = useLocation()
  const query = useQuery(agentQuery(id))
  const mayChange = atLeast(user.role, "admin")
  const shown = (content: ReactNode) => <Suspense>{content}</Suspense>
  return (
    <LoadedPage query={query}>
      {(agent) => (
        <Page
          title={agent.name}
          lead={agent.model ?? undefined}
          actions={mayChange ? <Removal agent={agent} /> : undefined}
        >
          <LastFailure agentId={id} />
          <Tabs
            label={t.parts}
            current={tab}
            onChange={(next) => navigate(`/agents/${id}/${next}`)}
            tabs={[
              ...(atLeast(user.role, "agent")
                ? ([["try", t.tryIt, shown(<Workbench agent={agent} user={user} />)]] as const)
                : []),
              ["sources", t.sources, shown(<Sources agentId={id} user={user} />)],
              ["settings", t.settings, shown(<Settings agent={agent} mayChange={mayChange} />)],
              ["versions", t.versions, shown(<Versions agent={agent} user={user} />)],
              ["improve", t.improve, shown(<Improve agentId={id} user={user} />)],
              ["cases", t.cases, shown(<TestCases agentId={id} mayChange={mayChange} />)],
              ...(atLeast(user.role, "agent")
                ? ([
                    ["experiments", t.experiments, shown(<Experiments agent={agent} mayChange={mayChange} />)]
                  ] as const)
                : []),
              ...(mayChange ? ([["keys", t.keys, shown(<Keys agentId={id} />)]] as const) : []),
              ["tools", t.tools, shown(<Tools agentId={id} mayChange={mayChange} />)],
              ["channels", t.channels, shown(<Channels agentId={id} mayChange={mayChange} />)],
              ...(mayChange ? ([["widget", t.widget, shown(<Designer agent={agent} />)]] as const) : [])
            ]}
          />
        </Page>
      )}
    </LoadedPage>
  )
}

export default AgentPage
