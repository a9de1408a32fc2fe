"""What was answered becomes steps.

new_steps.py     inputs, replies, results and whole turns as steps; what is recorded already is found again instead
replies.py       what a model answered, in any API's shape; results.py: what tools brought
"""
