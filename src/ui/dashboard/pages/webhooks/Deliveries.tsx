/** Deliveries to an endpoint, newest first. */
import { useInfiniteQuery } from "@tanstack/react-query"
import { deliveries, type Delivery } from "../../api/Webhooks.ts"
import { Badge, type Tone } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Actions } from "../../components/Dialog.tsx"
import { Loaded } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Cell } from "../../components/RowActions.tsx"
import { Table } from "../../components/Table.tsx"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { useText } from "../../text/Language.tsx"
import { words } from "./words.ts"
import css from "./Webhooks.module.css"
import { LoadMore } from "../../components/LoadMore.tsx"

const tones: Record<Delivery["status"], Tone> = {
  pending: "warn",
  delivered: "good",
  failed: "bad",
  cancelled: "neutral"
}

export const Deliveries = ({ webhookId }: { readonly webhookId: string }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { moment } = useFormat()
  const query = useInfiniteQuery(deliveries(webhookId))
  return (
    <>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.deliveries)
          return rows.length === 0 ? (
            <p>{t.noDeliveries}</p>
          ) : (
            <Table
              label={t.log}
              rows={rows}
              keyOf={({ eventId }) => eventId}
              columns={[
                { title: t.when, noWrap: true, cell: ({ createdAt }) => moment(createdAt) },
                {
                  title: t.event,
                  cell: ({ eventId, type }) => <Cell notes={[<code key="id">{eventId}</code>]}>{type}</Cell>
                },
                { title: t.state, cell: ({ status }) => <Badge tone={tones[status]}>{t[status]}</Badge> },
                { title: t.attempts, cell: ({ attempts }) => String(attempts) },
                {
                  title: t.answer,
                  cell: ({ answerStatus, answerText, error }) => (
                    <span className={css["soft"]}>
                      {error ?? `${answerStatus ?? ""} ${answerText ?? ""}`}
                    </span>
                  )
                }
              ]}
            />
          )
        }}
      </Loaded>
      {query.isRefetchError ? <Problem problem={query.error} /> : null}
      <Actions>
        <LoadMore query={query} />
        <Button busy={query.isRefetching} onClick={() => void query.refetch()}>
          {common.refresh}
        </Button>
      </Actions>
    </>
  )
}
