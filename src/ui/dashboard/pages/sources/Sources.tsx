/** The sources of each agent. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { useLocation, useSearchParams } from "wouter"
import { agents } from "../../api/Agents.ts"
import type { User } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Select } from "../../components/Field.tsx"
import { Empty, Loaded, Page } from "../../components/Page.tsx"
import { useText } from "../../text/Language.tsx"
import { SourceList } from "./SourceList.tsx"
import css from "./Sources.module.css"
import { words } from "./words.ts"

const Sources = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const query = useInfiniteQuery(agents)
  const [parameters, setParameters] = useSearchParams()
  const [, navigate] = useLocation()
  return (
    <Page title={t.title} lead={t.lead} guide="sources">
      <Loaded query={query}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.agents)
          const chosen = parameters.get("agent") ?? all[0]?.id
          if (chosen === undefined) {
            return (
              <Empty
                title={t.noAgents}
                action={
                  <Button kind="primary" onPress={() => navigate("/agents")}>
                    {t.toAgents}
                  </Button>
                }
              >
                {t.noAgentsLead}
              </Empty>
            )
          }
          return (
            <>
              <div className={css["agent"]}>
                <Select
                  label={t.agent}
                  options={all.map(({ id, name }) => [id, name] as const)}
                  value={chosen}
                  onChange={(id) => setParameters({ agent: id })}
                />
              </div>
              <SourceList key={chosen} agentId={chosen} user={user} />
            </>
          )
        }}
      </Loaded>
    </Page>
  )
}

export default Sources
