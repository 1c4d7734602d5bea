/** Where the tenant's events go: added, switched off, given new secrets, tested. A secret is shown once. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import {
  createWebhook,
  deleteWebhook,
  type EventType,
  eventTypes,
  rotateWebhook,
  setWebhookActive,
  testWebhook,
  type Webhook,
  webhooks
} from "../../api/Webhooks.ts"
import { Badge } from "../../components/Badge.tsx"
import { Button } from "../../components/Button.tsx"
import { Choices } from "../../components/Choices.tsx"
import { Copyable } from "../../components/Copyable.tsx"
import { Actions, Confirm, Dialog } from "../../components/Dialog.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { Empty, Loaded, Page } from "../../components/Page.tsx"
import { Problem } from "../../components/Problem.tsx"
import { Table } from "../../components/Table.tsx"
import { DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { everywhere } from "../../text/everywhere.ts"
import { useText } from "../../text/Language.tsx"
import { Deliveries } from "./Deliveries.tsx"
import { words } from "./words.ts"
import css from "./Webhooks.module.css"

interface SecretProps {
  readonly secret: string
  readonly note?: string
  readonly onClose: () => void
}

const Secret = ({ note, secret, onClose }: SecretProps) => {
  const t = useText(words)
  const common = useText(everywhere)
  return (
    <>
      <p>{t.secretHelp}</p>
      {note === undefined ? null : <p>{note}</p>}
      <Copyable label={t.secret} value={secret} />
      <Actions>
        <Button kind="primary" onPress={onClose}>
          {common.close}
        </Button>
      </Actions>
    </>
  )
}

const initial = (): ReadonlyArray<EventType> => ["turn.settled"]
const payload = (): Webhook["payload"] => "thin"
const nothing = { url: "", events: initial(), payload: payload() }

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const draft = useDraft({ name: "webhook", title: t.add, stored: nothing })
  const { change, value } = draft
  const create = useMutation({
    mutationFn: () => createWebhook(value),
    onSuccess: () => {
      draft.saved()
      return queries.invalidateQueries({ queryKey: webhooks.queryKey })
    }
  })
  const { errorOf, general } = useIssues(create.error, ["url", "events", "payload"])
  if (create.data !== undefined) return <Secret secret={create.data.secret} onClose={onClose} />
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <TextField
        label={t.url}
        help={t.urlHelp}
        placeholder="https://example.com/spoke"
        isRequired
        autoFocus
        value={value.url}
        onChange={(url) => change({ url })}
        error={errorOf("url")}
      />
      <Choices
        label={t.events}
        options={eventTypes.map((type) => [type, type, t[type]] as const)}
        value={value.events}
        onChange={(events) => change({ events })}
        error={errorOf("events")}
      />
      <Select
        label={t.content}
        options={[["thin", t.thin] as const, ["full", t.full] as const]}
        value={value.payload}
        onChange={(chosen) => change({ payload: chosen })}
      />
      <Actions>
        <DraftState draft={draft} />
        <Button onPress={onClose}>{common.cancel}</Button>
        <Button kind="primary" type="submit" busy={create.isPending}>
          {common.create}
        </Button>
      </Actions>
    </Form>
  )
}

const State = ({ disabledReason, failingSince, status }: Webhook) => {
  const t = useText(words)
  const reasons = { manual: t.manual, gone: t.goneReason, failing: t.failingReason }
  if (status === "active")
    return failingSince === null ? (
      <Badge tone="good">{t.active}</Badge>
    ) : (
      <Badge tone="warn">{t.failing}</Badge>
    )
  return (
    <span className={css["url"]}>
      <Badge tone={disabledReason === "manual" ? "neutral" : "bad"}>{t.disabled}</Badge>
      {disabledReason === null ? null : <span className={css["soft"]}>{reasons[disabledReason]}</span>}
    </span>
  )
}

interface DeedsProps {
  readonly found: Webhook
  readonly onLog: () => void
}

const Deeds = ({ found, onLog }: DeedsProps) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: webhooks.queryKey })
  const isActive = found.status === "active"
  const toggle = useMutation({ mutationFn: () => setWebhookActive(found, !isActive), onSettled: refresh })
  const rotate = useMutation({ mutationFn: () => rotateWebhook(found.id), onSettled: refresh })
  const test = useMutation({ mutationFn: () => testWebhook(found.id), onSettled: refresh })
  const problem = toggle.error ?? rotate.error ?? test.error
  const verb = isActive ? t.off : t.on
  return (
    <span className={css["deeds"]}>
      {problem === null ? null : <Problem problem={problem} />}
      {test.isSuccess ? <span className={css["soft"]}>{t.tested}</span> : null}
      <Dialog title={t.rotate} isOpen={rotate.data !== undefined} onClose={rotate.reset}>
        <Secret secret={rotate.data?.secret ?? ""} note={t.rotatedHelp} onClose={rotate.reset} />
      </Dialog>
      <Button kind="quiet" aria-label={`${t.log}: ${found.url}`} onPress={onLog}>
        {t.log}
      </Button>
      {isActive ? (
        <Button
          kind="quiet"
          aria-label={`${t.test}: ${found.url}`}
          busy={test.isPending}
          onPress={() => test.mutate()}
        >
          {t.test}
        </Button>
      ) : null}
      <Button
        kind="quiet"
        aria-label={`${t.rotate}: ${found.url}`}
        busy={rotate.isPending}
        onPress={() => rotate.mutate()}
      >
        {t.rotate}
      </Button>
      <Button
        kind="quiet"
        aria-label={`${verb}: ${found.url}`}
        busy={toggle.isPending}
        onPress={() => toggle.mutate()}
      >
        {verb}
      </Button>
      <Confirm
        trigger={
          <Button kind="quiet" aria-label={`${common.delete}: ${found.url}`}>
            {common.delete}
          </Button>
        }
        title={t.removal}
        question={t.question(found.url)}
        action={common.delete}
        onConfirm={async () => {
          await deleteWebhook(found.id)
          await refresh()
        }}
      />
    </span>
  )
}

const Webhooks = () => {
  const t = useText(words)
  const query = useInfiniteQuery(webhooks)
  const [creating, setCreating] = useState(false)
  const [logOf, setLogOf] = useState<string | null>(null)
  const add = (
    <Button kind="primary" onPress={() => setCreating(true)}>
      {t.add}
    </Button>
  )
  return (
    <Page title={t.title} lead={t.lead} actions={add}>
      <Dialog title={t.add} isOpen={creating} onClose={() => setCreating(false)} wide>
        <Create onClose={() => setCreating(false)} />
      </Dialog>
      <Dialog title={t.log} isOpen={logOf !== null} onClose={() => setLogOf(null)} wide>
        {logOf === null ? null : <Deliveries id={logOf} onClose={() => setLogOf(null)} />}
      </Dialog>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.webhooks)
          return rows.length === 0 ? (
            <Empty title={t.empty}>{t.emptyLead}</Empty>
          ) : (
            <Table
              label={t.title}
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: t.url,
                  cell: ({ events, url }) => (
                    <span className={css["url"]}>
                      {url}
                      <span className={css["soft"]}>{events.join(", ")}</span>
                    </span>
                  )
                },
                { title: t.state, cell: (found) => <State {...found} /> },
                {
                  title: t.actions,
                  silent: true,
                  end: true,
                  cell: (found) => <Deeds found={found} onLog={() => setLogOf(found.id)} />
                }
              ]}
            />
          )
        }}
      </Loaded>
    </Page>
  )
}

export default Webhooks
