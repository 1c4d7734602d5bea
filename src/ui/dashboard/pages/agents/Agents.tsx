/** The list of agents, and making a new one. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { useState } from "react"
import { Link, useLocation } from "wouter"
import { agents, createAgent } from "../../api/Agents.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { Button } from "../../components/Button.tsx"
import { Actions, Dialog } from "../../components/Dialog.tsx"
import { LongText, TextField } from "../../components/Field.tsx"
import { Empty, Loaded, Page } from "../../components/Page.tsx"
import { Table } from "../../components/Table.tsx"
import { DraftState } from "../../forms/DraftNotes.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { everywhere } from "../../text/everywhere.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"

const words = texts(
  {
    title: "Agents",
    lead: "An agent answers from its own knowledge base, under its own instructions and keys.",
    add: "New agent",
    empty: "No agent yet",
    emptyLead: "Create one, give it a source, and ask it something.",
    instructions: "Instructions",
    instructionsHelp: "How it should speak and what it should do. It can be changed at any time.",
    model: "Model",
    standard: "Default",
    updated: "Changed"
  },
  {
    title: "Agenten",
    lead: "Ein Agent antwortet aus seiner eigenen Wissensbasis, mit eigenen Anweisungen und Schlüsseln.",
    add: "Neuer Agent",
    empty: "Noch kein Agent",
    emptyLead: "Einen anlegen, ihm eine Quelle geben und etwas fragen.",
    instructions: "Anweisungen",
    instructionsHelp: "Wie er spricht und was er tun soll. Das lässt sich jederzeit ändern.",
    model: "Modell",
    standard: "Standard",
    updated: "Geändert"
  }
)

const nothing = { name: "", instructions: "" }

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const draft = useDraft({ name: "agent", title: t.add, stored: nothing })
  const { change, value } = draft
  const create = useMutation({
    mutationFn: () => createAgent(value.name, value.instructions),
    onSuccess: async ({ agent }) => {
      draft.saved()
      await queries.invalidateQueries({ queryKey: agents.queryKey })
      onClose()
      navigate(`/agents/${agent.id}`)
    }
  })
  const { errorOf, general } = useIssues(create.error, ["name", "instructions"])
  return (
    <Form onSubmit={() => create.mutate()} problem={general}>
      <TextField
        label={common.name}
        isRequired
        autoFocus
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <LongText
        label={t.instructions}
        help={t.instructionsHelp}
        value={value.instructions}
        onChange={(instructions) => change({ instructions })}
        error={errorOf("instructions")}
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

const Agents = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const common = useText(everywhere)
  const { ago } = useFormat()
  const query = useInfiniteQuery(agents)
  const [creating, setCreating] = useState(false)
  const add = atLeast(user.role, "admin") ? (
    <Button kind="primary" onPress={() => setCreating(true)}>
      {t.add}
    </Button>
  ) : null
  return (
    <Page title={t.title} lead={t.lead} actions={add}>
      <Dialog title={t.add} isOpen={creating} onClose={() => setCreating(false)}>
        <Create onClose={() => setCreating(false)} />
      </Dialog>
      <Loaded query={query}>
        {({ pages }) => {
          const rows = pages.flatMap((page) => page.agents)
          return rows.length === 0 ? (
            <Empty title={t.empty} action={add}>
              {t.emptyLead}
            </Empty>
          ) : (
            <Table
              label={t.title}
              rows={rows}
              keyOf={({ id }) => id}
              columns={[
                {
                  title: common.name,
                  cell: ({ id, name }) => <Link href={`/agents/${id}`}>{name}</Link>
                },
                { title: t.model, cell: ({ model }) => model ?? t.standard },
                { title: t.updated, end: true, whole: true, cell: ({ updatedAt }) => ago(updatedAt) }
              ]}
            />
          )
        }}
      </Loaded>
      {query.hasNextPage ? (
        <Button onPress={() => void query.fetchNextPage()}>{common.loadMore}</Button>
      ) : null}
    </Page>
  )
}

export default Agents
