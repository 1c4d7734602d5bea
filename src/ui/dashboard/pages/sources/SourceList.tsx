/** The sources of one agent, with live progress. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { Link } from "wouter"
import { atLeast, type User } from "../../api/Session.ts"
import { isUntouched, type SourceItem, sources, syncSource } from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { Empty, Loaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Table } from "../../components/Table.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { AddSource } from "./AddSource.tsx"
import { State } from "./State.tsx"
import css from "./Sources.module.css"
import { Why } from "./Why.tsx"
import { words } from "./words.ts"

/** For a source that was created without a sync. */
const SyncNow = ({ source: { id, name } }: { readonly source: SourceItem }) => {
  const t = useText(words)
  const queries = useQueryClient()
  const sync = useMutation({
    mutationFn: () => syncSource(id, false),
    onSettled: () => queries.invalidateQueries({ queryKey: ["sources"] })
  })
  return (
    <>
      <Button kind="quiet" aria-label={t.syncNowOf(name)} busy={sync.isPending} onPress={() => sync.mutate()}>
        {t.syncNow}
      </Button>
      {sync.error === null ? null : <Problem problem={sync.error} />}
    </>
  )
}

export const SourceList = ({ agentId, user }: { readonly agentId: string; readonly user: User }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const { ago } = useFormat()
  const query = useInfiniteQuery(sources(agentId))
  const [adding, setAdding] = useState(false)
  const mayChange = atLeast(user.role, "admin")
  const add = mayChange ? (
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
                          <span className={css["error"]}>
                            <Why error={row.lastError} />
                          </span>
                        )}
                      </span>
                    )
                  },
                  { title: t.type, cell: ({ type }) => t[type] },
                  {
                    title: t.status,
                    cell: (row) => (
                      <span className={css["state"]}>
                        <State source={row} />
                        {isUntouched(row) && mayChange ? <SyncNow source={row} /> : null}
                      </span>
                    )
                  },
                  {
                    title: t.synced,
                    end: true,
                    whole: true,
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
