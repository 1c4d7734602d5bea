/** The inbox: conversations that wait for a human, then all others, newest first. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { Link, useSearchParams } from "wouter"
import { agents } from "../../api/Agents.ts"
import {
  channels,
  isChannel,
  type Conversation,
  conversations,
  type Filter,
  type State,
  states
} from "../../api/Conversations.ts"
import { Avatar } from "../../components/Avatar.tsx"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Select } from "../../components/Field.tsx"
import { Empty, Loaded, Page } from "../../components/Page.tsx"
import { useSpoken } from "../../components/Prose.tsx"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { useFailure } from "../../text/useFailure.ts"
import css from "./Conversations.module.css"
import { tones, useHandoffReason, words } from "./words.ts"

/** A filter's key that filters nothing out. */
const every = "all"

const useAgents = () => {
  const query = useInfiniteQuery(agents)
  return query.data?.pages.flatMap((page) => page.agents) ?? []
}

const Line = ({ row, agent }: { readonly row: Conversation; readonly agent: string }) => {
  const t = useText(words)
  const { ago } = useFormat()
  const why = useFailure()
  const reasonOf = useHandoffReason()
  const preview = useSpoken(row.preview ?? "")
  const { failure } = row
  const { helpful, unhelpful } = row.ratings
  return (
    <li>
      <Link href={`/conversations/${row.id}`} className={css["line"] ?? ""}>
        <span className={css["avatar"]}>
          <Avatar name={row.customer ?? "?"} />
        </span>
        <span className={css["who"]}>{row.customer ?? t.anonymous}</span>
        <span className={css["badge"]}>
          {unhelpful === 0 ? null : <Badge tone="warn">{t.unhelpful(unhelpful)}</Badge>}
          {helpful === 0 ? null : <Badge tone="neutral">{t.helpful(helpful)}</Badge>}
          {failure === null ? null : <Badge tone="bad">{t.failed}</Badge>}
          <Badge tone={tones[row.state]}>{t[row.state]}</Badge>
        </span>
        <span className={css["preview"]}>
          {row.state === "HUMAN_REQUESTED" ? (reasonOf(row) ?? preview) : preview}
        </span>
        {failure === null ? null : <span className={css["failure"]}>{why(failure)}</span>}
        <span className={css["facts"]}>
          {[
            agent,
            isChannel(row.channel) ? t[row.channel] : row.channel,
            t.messages(row.messageCount),
            ago(row.updatedAt)
          ].join(" · ")}
        </span>
      </Link>
    </li>
  )
}

interface LinesProps {
  readonly title: string
  readonly rows: ReadonlyArray<Conversation>
}

const Lines = ({ title, rows }: LinesProps) => {
  const known = useAgents()
  return (
    <section className={css["section"]} aria-label={title}>
      <h2>{title}</h2>
      <ul className={css["lines"]}>
        {rows.map((row) => (
          <Line key={row.id} row={row} agent={known.find(({ id }) => id === row.agentId)?.name ?? "–"} />
        ))}
      </ul>
    </section>
  )
}

const List = ({ filter, onClear }: { readonly filter: Filter; readonly onClear: () => void }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const query = useInfiniteQuery(conversations(filter))
  const waiting = useInfiniteQuery({
    ...conversations({ ...filter, state: "HUMAN_REQUESTED" }),
    enabled: filter.state === undefined
  })
  const first =
    filter.state === undefined ? (waiting.data?.pages.flatMap((page) => page.conversations) ?? []) : []
  const filtered = Object.values(filter).some((value) => value !== undefined)
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const here = new Set(first.map(({ id }) => id))
          const rows = pages.flatMap((page) => page.conversations).filter(({ id }) => !here.has(id))
          if (rows.length === 0 && first.length === 0) {
            return filtered ? (
              <Empty title={t.noMatch} action={<Button onPress={onClear}>{t.clear}</Button>}>
                {t.noMatchLead}
              </Empty>
            ) : (
              <Empty title={t.empty}>{t.emptyLead}</Empty>
            )
          }
          return (
            <>
              {first.length === 0 ? null : <Lines title={t.waiting} rows={first} />}
              {waiting.hasNextPage && first.length > 0 ? (
                <Button onPress={() => void waiting.fetchNextPage()}>{common.loadMore}</Button>
              ) : null}
              {rows.length === 0 ? null : <Lines title={first.length === 0 ? t.all : t.others} rows={rows} />}
            </>
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button busy={query.isFetchingNextPage} onPress={() => void query.fetchNextPage()}>
          {common.loadMore}
        </Button>
      ) : null}
    </>
  )
}

const Conversations = () => {
  const t = useText(words)
  const known = useAgents()
  const [parameters, setParameters] = useSearchParams()
  const chosen = (name: string) => parameters.get(name) ?? every
  const choose = (name: string, value: string) =>
    setParameters((before) => {
      const after = new URLSearchParams(before)
      if (value === every) after.delete(name)
      else after.set(name, value)
      return after
    })
  const agentId = known.find(({ id }) => id === chosen("agent"))?.id
  const channel = channels.find((one) => one === chosen("channel"))
  const state: State | undefined = states.find((one) => one === chosen("state"))
  return (
    <Page title={t.title} lead={t.lead}>
      <div className={css["filters"]}>
        <Select
          label={t.agent}
          options={[[every, t.everyAgent], ...known.map(({ id, name }) => [id, name] as const)]}
          value={agentId ?? every}
          onChange={(value) => choose("agent", value)}
        />
        <Select
          label={t.channel}
          options={[[every, t.everyChannel], ...channels.map((one) => [one, t[one]] as const)]}
          value={channel ?? every}
          onChange={(value) => choose("channel", value)}
        />
        <Select
          label={t.state}
          options={[[every, t.everyState], ...states.map((one) => [one, t[one]] as const)]}
          value={state ?? every}
          onChange={(value) => choose("state", value)}
        />
      </div>
      <List filter={{ agentId, channel, state }} onClear={() => setParameters({})} />
    </Page>
  )
}

export default Conversations
