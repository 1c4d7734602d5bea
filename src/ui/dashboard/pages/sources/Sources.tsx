/** The sources of each agent. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { useLocation, useSearchParams } from "wouter"
import { type Agent, agents } from "../../api/Agents.ts"
import type { User } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Select } from "../../components/Field.tsx"
import { Empty, Loaded, Page } from "../../components/Page.tsx"
import { useAllPages } from "../../components/useAllPages.ts"
import { useText } from "../../text/Language.tsx"
import { useSourceActions } from "./SourceActions.tsx"
import { SourceList } from "./SourceList.tsx"
import { words } from "./words.ts"

interface AgentSourcesProps {
  readonly agentId: string
  readonly user: User
  readonly allAgents: ReadonlyArray<Agent>
}

const AgentSources = ({ agentId, user, allAgents }: AgentSourcesProps) => {
  const t = useText(words)
  const [, setParameters] = useSearchParams()
  const { buttons, dialog, headButtons } = useSourceActions(agentId, user)
  return (
    <Page
      title={t.title}
      lead={t.lead}
      guide="sources"
      actions={
        <>
          <Select
            compact
            label={t.agent}
            options={allAgents.map(({ id, name }) => [id, name] as const)}
            value={agentId}
            onChange={(id) => setParameters({ agent: id })}
          />
          {headButtons}
        </>
      }
    >
      {dialog}
      <SourceList agentId={agentId} user={user} add={buttons} />
    </Page>
  )
}

const Sources = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const query = useInfiniteQuery(agents)
  const [parameters] = useSearchParams()
  const [, navigate] = useLocation()
  const allAgents = useAllPages(query, (page) => page.agents)
  const chosen = parameters.get("agent") ?? allAgents?.[0]?.id
  if (allAgents !== undefined && chosen !== undefined) {
    return <AgentSources key={chosen} agentId={chosen} user={user} allAgents={allAgents} />
  }
  return (
    <Page title={t.title} lead={t.lead} guide="sources">
      <Loaded query={query}>
        {() => (
          <Empty
            title={t.noAgents}
            lead={t.noAgentsLead}
            action={
              <Button kind="primary" onClick={() => navigate("/agents")}>
                {t.toAgents}
              </Button>
            }
          />
        )}
      </Loaded>
    </Page>
  )
}

export default Sources
