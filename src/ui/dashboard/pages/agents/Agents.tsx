/** The list of agents, with a form for a new one. */
import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query"
import { Link, useLocation } from "wouter"
import { type Agent, agents, createAgent } from "../../api/Agents.ts"
import { atLeast, type User } from "../../api/Session.ts"
import { TextArea, TextField } from "../../components/Field.tsx"
import { isEmptyList, Listing, useCreateDialog } from "../../components/Listing.tsx"
import { Empty, Page } from "../../components/Page.tsx"
import { DialogActions } from "../../forms/DialogActions.tsx"
import { Form } from "../../forms/Form.tsx"
import { useDraft } from "../../forms/useDraft.ts"
import { useIssues } from "../../forms/useIssues.ts"
import { commonTexts } from "../../text/commonTexts.ts"
import { useFormat } from "../../text/Format.ts"
import { texts, useText } from "../../text/Language.tsx"
import { AgentState } from "./problems/Problems.tsx"

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
    state: "State",
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
    state: "Stand",
    updated: "Geändert"
  }
)

const emptyForm = { name: "", instructions: "" }

const Create = ({ onClose }: { readonly onClose: () => void }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const queries = useQueryClient()
  const [, navigate] = useLocation()
  const draft = useDraft({ name: "agent", title: t.add, stored: emptyForm })
  const { change, value } = draft
  const create = useMutation({
    mutationFn: () => createAgent(value.name, value.instructions),
    onSuccess: async () => {
      draft.saved()
      await queries.invalidateQueries({ queryKey: agents.queryKey })
    }
  })
  const submit = () =>
    create.mutate(undefined, {
      // Not called if the dialog was closed before: the person is then doing something else.
      onSuccess: ({ agent }) => {
        onClose()
        navigate(`/agents/${agent.id}`)
      }
    })
  const { errorOf, general } = useIssues(create.error, ["name", "instructions"])
  return (
    <Form onSubmit={submit} problem={general}>
      <TextField
        label={common.name}
        required
        autoFocus
        value={value.name}
        onChange={(name) => change({ name })}
        error={errorOf("name")}
      />
      <TextArea
        label={t.instructions}
        help={t.instructionsHelp}
        value={value.instructions}
        onChange={(instructions) => change({ instructions })}
        error={errorOf("instructions")}
      />
      <DialogActions draft={draft} busy={create.isPending} onClose={onClose} action={common.create} />
    </Form>
  )
}

const Agents = ({ user }: { readonly user: User }) => {
  const t = useText(words)
  const common = useText(commonTexts)
  const { ago } = useFormat()
  const query = useInfiniteQuery(agents)
  const { button, dialog } = useCreateDialog({
    title: t.add,
    form: (close) => <Create onClose={close} />
  })
  const add = atLeast(user.role, "admin") ? button : null
  return (
    <Page
      title={t.title}
      lead={t.lead}
      guide="getting-started"
      actions={isEmptyList(query, (page) => page.agents) ? undefined : add}
    >
      {dialog}
      <Listing
        query={query}
        rowsOf={(page) => page.agents}
        textOf={({ id, name }) => `${name} ${id}`}
        empty={<Empty title={t.empty} lead={t.emptyLead} action={add} />}
        label={t.title}
        keyOf={({ id }) => id}
        columns={[
          {
            title: common.name,
            cell: ({ id, name }) => (
              <Link href={`/agents/${id}`} data-row>
                {name}
              </Link>
            )
          },
          { title: t.model, untitledOnPhone: true, cell: ({ model }) => model ?? t.standard },
          ...(atLeast(user.role, "agent")
            ? [
                {
                  title: t.state,
                  untitledOnPhone: true,
                  cell: ({ id }: Agent) => <AgentState agentId={id} user={user} />
                }
              ]
            : []),
          {
            title: t.updated,
            alignEnd: true,
            noWrap: true,
            untitledOnPhone: true,
            cell: ({ updatedAt }) => ago(updatedAt)
          }
        ]}
      />
    </Page>
  )
}

export default Agents
