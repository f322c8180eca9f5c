"""The async side: `chat()`, the stages that it fuses, and the tasks they run in."""
