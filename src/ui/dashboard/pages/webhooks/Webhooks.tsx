/** Webhook endpoints: add, switch off, rotate the secret, test. A secret is shown once. */
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
import { CheckboxGroup } from "../../components/Checkboxes.tsx"
import { Dialog } from "../../components/Dialog.tsx"
import { Select, TextField } from "../../components/Field.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { useShowSecret } from "../../components/OneTimeSecret.tsx"
import { Empty, Page } from "../../components/Page.tsx"
import { Cell, RowActions, RowButton } from "../../components/RowActions.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useText } from "../../text/Language.tsx"
import { Deliveries } from "./Deliveries.tsx"
import { words } from "./words.ts"

const defaultEvents = (): ReadonlyArray<EventType> => ["turn.settled"]
const defaultPayload = (): Webhook["payload"] => "thin"
const emptyForm = { url: "", events: defaultEvents(), payload: defaultPayload() }

const CreateWebhook = ({ onClose }: { readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const showSecret = useShowSecret()
  const draft = useDraft({ name: "webhook", title: t.add, stored: emptyForm })
  const { change, value } = draft
  const create = useMutation({
    mutationFn: () => createWebhook(value),
    onSuccess: ({ secret }) => {
      draft.saved()
      onClose()
      showSecret({ title: t.add, label: t.secret, help: t.secretHelp, secret })
      // The secret is shown without waiting for the list.
      void queries.invalidateQueries({ queryKey: webhooks.queryKey })
    }
  })
  const { errorOf, general } = useIssues(create.error, ["url", "events", "payload"])
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <TextField
        label={t.url}
        help={t.urlHelp}
        placeholder="https://example.com/spoke"
        required
        autoFocus
        value={value.url}
        onChange={(url) => change({ url })}
        error={errorOf("url")}
      />
      <CheckboxGroup
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
      <DialogActions
        draft={draft}
        busy={create.isPending}
        onClose={onClose}
        showsSecret
        action={common.create}
      />
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
    <Cell notes={[disabledReason === null ? null : reasons[disabledReason]]}>
      <Badge tone={disabledReason === "manual" ? "neutral" : "bad"}>{t.disabled}</Badge>
    </Cell>
  )
}

interface ActionsProps {
  readonly webhook: Webhook
  readonly onShowLog: () => void
}

const Actions = ({ webhook, onShowLog }: ActionsProps) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const refresh = () => queries.invalidateQueries({ queryKey: webhooks.queryKey })
  const isActive = webhook.status === "active"
  const toggle = useMutation({ mutationFn: () => setWebhookActive(webhook, !isActive), onSettled: refresh })
  const showSecret = useShowSecret()
  const rotate = useMutation({
    mutationFn: () => rotateWebhook(webhook.id),
    onSuccess: ({ secret }) =>
      showSecret({
        title: t.rotate,
        label: t.secret,
        help: t.secretHelp,
        secret,
        instructions: <p>{t.rotatedHelp}</p>
      }),
    onSettled: refresh
  })
  const test = useMutation({ mutationFn: () => testWebhook(webhook.id), onSettled: refresh })
  const problem = toggle.error ?? rotate.error ?? test.error
  const verb = isActive ? t.off : t.on
  return (
    <RowActions
      of={webhook.url}
      id={webhook.id}
      problem={problem}
      actions={[
        ...(isActive ? [{ label: t.test, does: () => test.mutate() }] : []),
        { label: t.rotate, does: () => rotate.mutate() },
        { label: verb, does: () => toggle.mutate() },
        {
          label: common.delete,
          does: {
            title: t.removal,
            question: t.question(webhook.url),
            action: common.delete,
            onConfirm: () => deleteWebhook(webhook.id).then(refresh)
          }
        }
      ]}
    >
      {test.isSuccess ? <span role="status">{t.tested}</span> : null}
      <RowButton label={t.log} of={webhook.url} onClick={onShowLog} />
    </RowActions>
  )
}

const Webhooks = () => {
  const t = useText(words)
  const query = useInfiniteQuery(webhooks)
  const [logWebhookId, setLogWebhookId] = useState<string | null>(null)
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <CreateWebhook onClose={close} />,
    wide: true
  })
  return (
    <Page
      title={t.title}
      lead={t.lead}
      guide="events"
      actions={isEmptyList(query, (page) => page.webhooks) ? undefined : button}
    >
      {dialog}
      <Dialog title={t.log} isOpen={logWebhookId !== null} onClose={() => setLogWebhookId(null)} wide>
        {logWebhookId === null ? null : <Deliveries webhookId={logWebhookId} />}
      </Dialog>
      <Listing
        query={query}
        rowsOf={(page) => page.webhooks}
        empty={<Empty title={t.empty} lead={t.emptyLead} action={button} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: t.url,
            cell: ({ events, url }) => (
              <Cell notes={[events.join(", ")]}>
                <strong>{url}</strong>
              </Cell>
            )
          },
          { title: t.state, cell: (webhook) => <State {...webhook} /> }
        ]}
        actions={(webhook) => <Actions webhook={webhook} onShowLog={() => setLogWebhookId(webhook.id)} />}
      />
    </Page>
  )
}

export default Webhooks
