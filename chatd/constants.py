"""
Every limit and rhythm of the control plane, with its unit and its reason.

Those that an installation may want otherwise are settings (``chatd.settings``), whose
defaults come from here.
"""

__all__ = [
    "ACQUIRE_BATCH",
    "ACQUIRE_INTERVAL_S",
    "AGENTS_PAGE",
    "AGENTS_PAGE_MAX",
    "ANSWER_S",
    "AUTO_ARCHIVE_BATCH",
    "AUTO_ARCHIVE_INTERVAL_S",
    "CHATS_PAGE",
    "CHATS_PAGE_MAX",
    "COALESCE_S",
    "HEARTBEAT_INTERVAL_S",
    "HINT_PROBE_S",
    "HINT_SILENCE_S",
    "LARGE_THRESHOLD",
    "LARGE_WINDOW_TOKENS",
    "LEASE_S",
    "MAX_ATTEMPTS",
    "MAX_BATCH",
    "MAX_BODY_BYTES",
    "MAX_CLIENT_FRAME_BYTES",
    "MAX_DEPLOYMENT_PROMPT_BYTES",
    "MAX_DETAIL_CHARACTERS",
    "MAX_DYNAMIC_TOOLS",
    "MAX_EPISODE_BYTES",
    "MAX_FILES",
    "MAX_FILE_BYTES",
    "MAX_FILE_NAME_BYTES",
    "MAX_LABELS",
    "MAX_LABEL_KEY_BYTES",
    "MAX_LABEL_VALUE_BYTES",
    "MAX_OUTPUT_TOKENS",
    "MAX_QUEUED",
    "MAX_REENTRIES",
    "MAX_RUNNING_AGENTS",
    "MAX_RUNNING_CHATS",
    "MAX_STEPS",
    "MAX_SYSTEM_PROMPT",
    "MAX_TITLE_WORDS",
    "MAX_TOOLS",
    "MAX_WORKSPACES",
    "MESSAGES_PAGE",
    "MESSAGES_PAGE_MAX",
    "MIN_BUDGET_BYTES",
    "POLL_S",
    "PROMPTS_PAGE",
    "PROMPTS_PAGE_MAX",
    "RECORDING_STOP_S",
    "REPLICA_INTERVAL_S",
    "REPLICA_TIMEOUT_S",
    "REQUIRES_ACTION_S",
    "RESULT_BYTES_PER_TOKEN",
    "RESULT_WINDOW_DIVISOR",
    "RETRY_CAP_S",
    "RETRY_INITIAL_S",
    "RETRY_SPREAD",
    "RUNNER_SYNC_S",
    "STARTUP_TIMEOUT_S",
    "STREAM_SILENCE_TIMEOUT_S",
    "SUBSCRIBER_STALL_S",
    "THRESHOLD",
    "TITLE_CHARACTERS",
    "TITLE_MESSAGE_CHARACTERS",
    "TITLE_S",
    "TITLE_SAMPLE_CHARACTERS",
    "TITLE_TOKENS",
    "TITLE_WORDS",
    "UNKNOWN_WINDOW_BYTES",
    "UPLOAD_S",
    "WAIT_AGENT_BLIND_S",
    "WAIT_AGENT_POLL_S",
    "WAIT_AGENT_S",
]

# -- work ----------------------------------------------------------------------

# Seconds between looks for work when nobody wakes the worker.
ACQUIRE_INTERVAL_S = 1.0
# Chats taken at one look.
ACQUIRE_BATCH = 10
# Chats that people opened, and sub-agents, at work at once; the rest wait, but stops never do. More than the
# five and ten of a shared deployment: here a chat that waits for a model costs next to nothing.
MAX_RUNNING_CHATS, MAX_RUNNING_AGENTS = 100, 200
# Seconds between signs of life of all runners; five fit into a lease.
HEARTBEAT_INTERVAL_S = 60.0
# Seconds without a sign until a runner is dead.
LEASE_S = 300.0
# Seconds after which a runner reads its chat again although no hint came: a stop must not get lost with one.
RUNNER_SYNC_S = 15.0
# Seconds between a replica's signs of life, and of silence until the others take over what it drives.
REPLICA_INTERVAL_S, REPLICA_TIMEOUT_S = 3.0, 15.0
# Seconds between signs that hints find their way to a replica, and of silence until it listens anew. Hints
# hold no state here, so none is ever stale (spec 8: 30 s): who gets one reads the row.
HINT_PROBE_S, HINT_SILENCE_S = 10.0, 30.0
# Model calls in one turn: a loop that never ends costs money.
MAX_STEPS = 1200
# Tries of one model call.
MAX_ATTEMPTS = 25
# Seconds until a vendor's first sign of life in a model call, and between two of them.
STARTUP_TIMEOUT_S = 60.0
STREAM_SILENCE_TIMEOUT_S = 600.0
# Seconds before the first retry, doubled each time; the longest wait without a hint of the vendor's.
RETRY_INITIAL_S, RETRY_CAP_S = 1.0, 60.0
# Share of a wait that chance adds, at most: chats that failed together do not come back together.
RETRY_SPREAD = 0.2
# Code points of a failure's detail, which clients see; the ellipsis included.
MAX_DETAIL_CHARACTERS = 500
# Tokens of one answer, thinking included.
MAX_OUTPUT_TOKENS = 32_000
# Tools of one request: OpenAI refuses a request with more as a whole.
MAX_TOOLS = 128
# Share of a model's window that one tool result may fill, and how many bytes a token stands for.
RESULT_WINDOW_DIVISOR, RESULT_BYTES_PER_TOKEN = 2, 4
# Bytes of one tool result for a model whose window nobody told, and the least that any model gets.
UNKNOWN_WINDOW_BYTES, MIN_BUDGET_BYTES = 65_536, 16_384
# Percent of the window at which a history is summarised; large windows earlier, since a prompt of half a
# million tokens is slow and dear long before it is full.
THRESHOLD, LARGE_THRESHOLD, LARGE_WINDOW_TOKENS = 70, 30, 500_000
# Seconds that wait_agent waits unless the model says, and between its looks when no hint comes; while no hint
# can come from other replicas.
WAIT_AGENT_S, WAIT_AGENT_POLL_S, WAIT_AGENT_BLIND_S = 300.0, 5.0, 0.2
# Agents on a page of list_agents: at least and at most.
AGENTS_PAGE, AGENTS_PAGE_MAX = 10, 50
# Seconds for a film of an agent to be whole once it is stopped: it is made seekable first.
RECORDING_STOP_S = 90.0
# Times that a model which ended by itself is asked again after a summary, within one turn.
MAX_REENTRIES = 3
# Seconds a client has to answer the calls of its own tools.
REQUIRES_ACTION_S = 300

# -- chats ---------------------------------------------------------------------

# Messages that may wait in one chat; one more is refused.
MAX_QUEUED = 20
# Words and characters of a title made from the first message.
TITLE_WORDS = 6
TITLE_CHARACTERS = 80
# Words of a title by a model; characters of what it is shown, and of one message in it; tokens of its answer;
# seconds for it.
MAX_TITLE_WORDS = 8
TITLE_SAMPLE_CHARACTERS, TITLE_MESSAGE_CHARACTERS = 6_000, 1_000
TITLE_TOKENS, TITLE_S = 256, 30.0
# Bytes of a request's body, one that makes a chat included (spec 8: 256 KiB for that): messages are at most
# 200,000 characters a part, and what may be sent to a chat may also begin one.
MAX_BODY_BYTES = 8 * 1024 * 1024
# Labels of one chat; bytes of a key and of a value.
MAX_LABELS = 50
MAX_LABEL_KEY_BYTES = 64
MAX_LABEL_VALUE_BYTES = 256
# Tools of a chat's client.
MAX_DYNAMIC_TOOLS = 250
# Uploads linked to one chat, the newest ones; bytes of one, and of its name.
MAX_FILES = 50
MAX_FILE_BYTES = 10 * 1024 * 1024
MAX_FILE_NAME_BYTES = 255
# Characters of what one chat, and all chats of one user, are told; bytes of what all chats are.
MAX_SYSTEM_PROMPT = 10_000
MAX_DEPLOYMENT_PROMPT_BYTES = 128 * 1024
# Seconds between looks for chats to archive, and how many are archived at one.
AUTO_ARCHIVE_INTERVAL_S = 3600.0
AUTO_ARCHIVE_BATCH = 1000

# Seconds an upload waits for a message that names it, and an answer for its repeated request.
UPLOAD_S = 24 * 3600
ANSWER_S = 24 * 3600

# -- pages ---------------------------------------------------------------------

# Rows on a page: by default and at most.
MESSAGES_PAGE, MESSAGES_PAGE_MAX = 50, 200
PROMPTS_PAGE, PROMPTS_PAGE_MAX = 500, 2000
CHATS_PAGE, CHATS_PAGE_MAX = 50, 200
# Workspaces whose newest chats are asked for at once.
MAX_WORKSPACES = 25

# -- streams -------------------------------------------------------------------

# Events in one batch; a slow client gets the rest in the next.
MAX_BATCH = 256
# Bytes of one episode's fragments. Past it new fragments are dropped: the message itself still comes. They go
# with their turn, not 15 s later (spec 8): a reset tells whoever watches, and what they became is committed.
MAX_EPISODE_BYTES = 1024 * 1024
# Bytes that a client may send in one frame: it has nothing to say on a stream, where spec 8 allows 4 MiB.
MAX_CLIENT_FRAME_BYTES = 4 * 1024
# Seconds to gather fragments before they are sent: fewer, larger frames, not noticeable to people.
COALESCE_S = 0.015
# Seconds for a client to take what it is sent; one that does not is cut off, and comes back where it was.
SUBSCRIBER_STALL_S = 10.0
# Seconds after which the versions are read again although no hint came.
POLL_S = 10.0
