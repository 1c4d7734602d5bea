/** The sources of one agent, with live progress. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import {
  createContext,
  type FormEvent,
  type ReactNode,
  useCallback,
  useContext,
  useEffect,
  useMemo,
  useState
} from "react"
import { Link, useSearchParams } from "wouter"
import { atLeast, type User } from "../../api/Session.ts"
import { membersOf } from "../../api/membersOf.ts"
import {
  isNeverRead,
  type SourceItem,
  sources,
  type SourceStatus,
  type SourceType,
  syncSource
} from "../../api/Sources.ts"
import { Button } from "../../components/Button.tsx"
import { Checkbox } from "../../components/Checkboxes.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { isEmptyList } from "../../components/Listing.tsx"
import { Empty, Loaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Cell } from "../../components/RowActions.tsx"
import { type Column, Table } from "../../components/Table.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { BulkActions } from "./BulkActions.tsx"
import { TestSearch } from "./contents/TestSearch.tsx"
import { SourceState } from "./SourceState.tsx"
import { Uploads } from "./uploads/Uploads.tsx"
import css from "./Sources.module.css"
import { ReadingError } from "./ReadingError.tsx"
import { words } from "./words.ts"
import { LoadMore } from "../../components/LoadMore.tsx"

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
      <Button kind="quiet" aria-label={t.syncNowOf(name)} busy={sync.isPending} onClick={() => sync.mutate()}>
        {t.syncNow}
      </Button>
      {sync.error === null ? null : <Problem problem={sync.error} />}
    </>
  )
}

const types = membersOf<SourceType>({
  URL: true,
  SITEMAP: true,
  FILE: true,
  IMAGE: true,
  BULK_UPLOAD: true,
  TEXT: true,
  QA: true,
  CONNECTOR: true
})
const statuses = membersOf<SourceStatus>({ PENDING: true, PROCESSING: true, READY: true, FAILED: true })

interface SourceFilter {
  readonly q: string
  readonly type: SourceType | "all"
  readonly status: SourceStatus | "all"
}

/** The service accepts no longer text. */
const maxQueryLength = 200

/** The filter that the address of the page contains, and a function that changes it. */
const useSourceFilter = () => {
  const [parameters, setParameters] = useSearchParams()
  const filter: SourceFilter = {
    q: (parameters.get("q") ?? "").trim().slice(0, maxQueryLength),
    type: types.find((one) => one === parameters.get("type")) ?? "all",
    status: statuses.find((one) => one === parameters.get("status")) ?? "all"
  }
  const setFilter = (next: SourceFilter) =>
    setParameters(
      (previous) => {
        for (const name of ["q", "type", "status"] as const) {
          if (next[name] === "" || next[name] === "all") previous.delete(name)
          else previous.set(name, next[name])
        }
        return previous
      },
      { replace: true }
    )
  return [filter, setFilter] as const
}

interface FiltersProps {
  readonly filter: SourceFilter
  readonly onChange: (filter: SourceFilter) => void
}

const Filters = ({ filter, onChange }: FiltersProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const [typed, setTyped] = useState(filter.q)
  // A link may have changed it.
  useEffect(() => setTyped(filter.q), [filter.q])
  const submit = (event: FormEvent) => {
    event.preventDefault()
    onChange({ ...filter, q: typed.trim() })
  }
  return (
    <div className={css["filters"]}>
      <form role="search" aria-label={t.find} className={css["find"]} onSubmit={submit}>
        <TextField
          compact
          label={t.find}
          placeholder={t.find}
          value={typed}
          maxLength={maxQueryLength}
          onChange={setTyped}
        />
        <Button type="submit">{common.search}</Button>
      </form>
      <Select
        compact
        label={t.type}
        options={[["all", t.allTypes], ...types.map((type) => [type, t[type]] as const)]}
        value={filter.type}
        onChange={(type) => onChange({ ...filter, type })}
      />
      <Select
        compact
        label={t.status}
        options={[["all", t.allStates], ...statuses.map((status) => [status, t[status]] as const)]}
        value={filter.status}
        onChange={(status) => onChange({ ...filter, status })}
      />
    </div>
  )
}

interface Selection {
  /** Ids of the sources that are shown. */
  readonly ids: ReadonlyArray<string>
  readonly chosen: ReadonlySet<string>
  readonly choose: (ids: ReadonlyArray<string>, isChosen: boolean) => void
}

/** Only the check boxes read it, so that a choice does not render the rows of the table again. */
const SelectionContext = createContext<Selection>({ ids: [], chosen: new Set(), choose: () => {} })

const ChooseAll = () => {
  const t = useText(words)
  const { choose, chosen, ids } = useContext(SelectionContext)
  const count = ids.filter((id) => chosen.has(id)).length
  return (
    <Checkbox
      label={t.chooseAll}
      isSelected={count > 0 && count === ids.length}
      isIndeterminate={count > 0 && count < ids.length}
      onChange={(all) => choose(ids, all)}
    />
  )
}

const ChooseOne = ({ source: { id, name } }: { readonly source: SourceItem }) => {
  const t = useText(words)
  const { choose, chosen } = useContext(SelectionContext)
  const onChange = useCallback((isChosen: boolean) => choose([id], isChosen), [choose, id])
  return <Checkbox label={t.chooseOne(name)} isSelected={chosen.has(id)} onChange={onChange} />
}

const useColumns = (mayChange: boolean): ReadonlyArray<Column<SourceItem>> => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago } = useFormat()
  return useMemo(() => {
    const choice: Column<SourceItem> = {
      title: t.choose,
      hideTitle: true,
      header: <ChooseAll />,
      cell: (source) => <ChooseOne source={source} />
    }
    return [
      ...(mayChange ? [choice] : []),
      {
        title: common.name,
        cell: (row) => (
          <Cell
            notes={[
              row.lastError === null ? null : (
                <span key="error" className={css["error"]}>
                  <ReadingError error={row.lastError} />
                </span>
              )
            ]}
          >
            <Link href={`/sources/${row.id}`}>{row.name}</Link>
          </Cell>
        )
      },
      { title: t.type, untitledOnPhone: true, cell: ({ type }) => t[type] },
      {
        title: t.status,
        untitledOnPhone: true,
        cell: (row) => (
          <span className={css["state"]}>
            <SourceState source={row} />
            {isNeverRead(row) && mayChange ? <SyncNow source={row} /> : null}
          </span>
        )
      },
      {
        title: t.synced,
        untitledOnPhone: true,
        alignEnd: true,
        noWrap: true,
        cell: ({ lastSyncedAt }) => (lastSyncedAt === null ? null : ago(lastSyncedAt))
      }
    ]
  }, [ago, common, mayChange, t])
}

interface Props {
  readonly agentId: string
  readonly user: User
  /** The controls that add the first source. */
  readonly add: ReactNode
}

export const SourceList = ({ add, agentId, user }: Props) => {
  const t = useText(words)
  const [filter, setFilter] = useSourceFilter()
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const isFiltered = filter.q !== "" || filter.type !== "all" || filter.status !== "all"
  const query = useInfiniteQuery(
    sources(agentId, {
      ...(filter.q === "" ? {} : { q: filter.q }),
      ...(filter.type === "all" ? {} : { type: filter.type }),
      ...(filter.status === "all" ? {} : { status: filter.status })
    })
  )
  const mayChange = atLeast(user.role, "admin")
  const hasSome = isFiltered || (query.data !== undefined && !isEmptyList(query, (page) => page.sources))
  const columns = useColumns(mayChange)
  const choose = useCallback(
    (ids: ReadonlyArray<string>, isChosen: boolean) =>
      setChosen((previous) => {
        const next = new Set(previous)
        for (const id of ids) {
          if (isChosen) next.add(id)
          else next.delete(id)
        }
        return next
      }),
    []
  )
  return (
    <>
      {mayChange ? <Uploads agentId={agentId} user={user} /> : null}
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.sources)
          if (rows.length === 0 && !isFiltered) {
            return <Empty title={t.empty} lead={t.emptyLead} action={add} />
          }
          const selected = rows.filter(({ id }) => chosen.has(id))
          return (
            <>
              <Filters filter={filter} onChange={setFilter} />
              <BulkActions chosen={selected} onChange={setChosen} />
              {rows.length === 0 ? (
                <p className={css["none"]}>{t.noneFound}</p>
              ) : (
                <SelectionContext value={{ ids: rows.map(({ id }) => id), chosen, choose }}>
                  <Table label={t.title} rows={rows} keyOf={({ id }) => id} columns={columns} />
                </SelectionContext>
              )}
            </>
          )
        }}
      </Loaded>
      <LoadMore query={query} />
      {atLeast(user.role, "agent") && hasSome ? <TestSearch agentId={agentId} /> : null}
    </>
  )
}
