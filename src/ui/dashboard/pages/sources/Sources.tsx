/** The sources of one agent, with their progress as it happens. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { useState } from "react"
import { Link, useLocation, useSearchParams } from "wouter"
import { agents } from "../../api/Agents.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { sources } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { Select } from "../../components/Field.tsx"
import { Empty, Loaded, Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { AddSource } from "./AddSource.tsx"
import { State } from "./State.tsx"
import css from "./Sources.module.css"
import { words } from "./words.ts"

const SourceList = ({ agentId, user }: { readonly agentId: string; readonly user: User }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const { ago } = useFormat()
  const query = useInfiniteQuery(sources(agentId))
  const [adding, setAdding] = useState(false)
  const add = atLeast(user.role, "admin") ? (
    <Button kind="primary" onPress={() => setAdding(true)}>
      {t.add}
    </Button>
  ) : null
  return (
    <>
      <AddSource agentId={agentId} isOpen={adding} onClose={() => setAdding(false)} />
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.sources)
          if (rows.length === 0) {
            return (
              <Empty title={t.empty} action={add}>
                {t.emptyLead}
              </Empty>
            )
          }
          return (
            <>
              <div className={css["bar"]}>{add}</div>
              <Table
                label={t.title}
                rows={rows}
                keyOf={({ id }) => id}
                columns={[
                  {
                    title: common.name,
                    cell: (row) => (
                      <span className={css["name"]}>
                        <Link href={`/sources/${row.id}`}>{row.name}</Link>
                        {row.lastError === null ? null : (
                          <span className={css["error"]}>{row.lastError}</span>
                        )}
                      </span>
                    )
                  },
                  { title: t.type, cell: ({ type }) => t[type] },
                  { title: t.status, cell: (row) => <State source={row} /> },
                  {
                    title: t.synced,
                    end: true,
                    cell: ({ lastSyncedAt }) => (lastSyncedAt === null ? t.never : ago(lastSyncedAt))
                  }
                ]}
              />
            </>
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button onPress={() => void query.fetchNextPage()}>{common.loadMore}</Button>
      ) : null}
    </>
  )
}

const Sources = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const query = useInfiniteQuery(agents)
  const [parameters, setParameters] = useSearchParams()
  const [, navigate] = useLocation()
  return (
    <Page title={t.title} lead={t.lead}>
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
